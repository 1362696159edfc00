"""The pull: ready claims become a worker's grants, at a cost that does not depend on the backlog.

One statement does it all, so that nothing can come between looking and granting:

    pick     the first due claims, priority by priority and queue by queue, each by one scan in index order;
             locked SKIP LOCKED, so that pullers never wait for each other nor take the same claim
    locked   the slot rows of the picked claims, SKIP LOCKED: a row that could not be locked is unknown, not busy
    verdict  per slot group the oldest claims take the free rows; of the rest, `skip` claims end and others park,
             but only where every row of the group was locked and found busy; else they stay ready. Of a group that
             has more rows than its limit (it was lowered while runs are in flight) as many free rows are left free
    moved    the claims change; only those that did take a token and a slot row (invariant 4)

Rules that keep it fast, each found by measuring:

* Priorities are literals and the inner LIMITs are constants: a generic plan guesses a LIMIT parameter as a tenth of
  the table and then sorts the backlog.
* ``statement_timestamp()``, not ``clock_timestamp()``, which no index can be asked for.
* ``plan_by_index`` keeps a plan that was cached while the tables were small from being a sequential scan later.
* No join of what was picked with itself, nor with the slots beyond one per group: a plan made before the tables were
  analyzed expects one row of each, and would loop over them (29 ms for 200 claims, where it takes 6).
* The slot rows are looked up by an array: by a join, with up to some 20,000 of them, the plan read all there are.

A parked claim waits until its slot is freed: whoever frees it must then wait for the puller's lock on the slot row,
and promotes in a later statement, which sees the parked claim. What parking asks for beside that (`overlap: replace`,
`queue_limit`) is done in statements of their own afterwards, by `sexton.store.postgres.parking`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from psycopg import RawCursor

from sexton.claims import Origin
from sexton.store.postgres.places import is_replaced
from sexton.store.protocol import Grant
from sexton.store.pull_turns import PRIORITIES, priorities_from

LARGEST_PULL = 500
_ORIGINS = tuple(Origin)
_NO_JITTER = timedelta(0)
# With a transaction id, by which housekeeping knows a backend that may keep others waiting.
_TRY_GATE = b"SELECT CASE WHEN pg_try_advisory_xact_lock(%s, %s) THEN pg_current_xact_id() IS NOT NULL END"
_CATCH_UP_GATE = (0x5E870, 1)  # any two numbers; the advisory lock of all who pull the paced class

GRANT_COLUMNS = (
    "job_id, scheduled_at, revision, origin, token, attempt, retries, slot, jitter_ms, at_most_once,"
    " lease_expires_at, priority, losses"
)
LIVE = "NOT (origin IN (1, 2, 3))"
PACED = "origin IN (1, 2, 3)"
READY = "state = 0 AND NOT blocked"

_SCAN = """(SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE {ready} AND {origins} AND queue = ${queue}::text AND priority = {priority}{unruled}
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT {limit} FOR UPDATE SKIP LOCKED)"""

# Queues with a rule are pulled by `sexton.store.postgres.ruled_queues` alone. Asked once a scan, not for each claim.
_UNRULED = """
     AND NOT EXISTS (SELECT 1 FROM queues r WHERE r.name = ${queue}::text)"""

_ROOM = "$3::bigint"
# At most $4 at once in the cluster. The count is right because it is taken in a statement that began after the gate
# was locked: whoever held it before has committed.
_PACED_ROOM = f"least({_ROOM}, greatest(0, $4::bigint - (SELECT count(*) FROM claims WHERE state = 1 AND {PACED})))"  # noqa: S608 - built from constants

# Rows beyond the limit of a concurrency key. One's own slot, numbered like the job, has one row always.
_EXCESS = """CASE WHEN slot < 0 THEN greatest(0, (SELECT count(*) FROM slots t WHERE t.slot = locked.slot)
    - (SELECT size FROM slot_groups WHERE group_id = -locked.slot)) ELSE 0 END"""

_PULL = """WITH pick AS MATERIALIZED (
  SELECT first.*, row_number() OVER () AS place FROM (
   SELECT * FROM (SELECT * FROM {scans}) classes
   WHERE NOT EXISTS (SELECT 1 FROM cluster WHERE halted OR {replaced}) LIMIT {room}) first),
 locked AS MATERIALIZED (
  SELECT slot, number, token FROM slots WHERE slot = ANY (ARRAY(SELECT slot FROM pick WHERE overlap <> 0))
  FOR UPDATE OF slots SKIP LOCKED),
 groups AS (SELECT slot, count(*) AS seen, min(token) AS met,
   array_agg(number ORDER BY number) FILTER (WHERE token IS NULL) AS free, {excess} AS excess
  FROM locked GROUP BY slot),
 ranked AS (SELECT pick.*, row_number() OVER (PARTITION BY slot ORDER BY scheduled_at, job_id) AS rank
  FROM pick WHERE overlap <> 0),
 verdict AS MATERIALIZED (
  SELECT r.tid, r.place, r.slot, r.job_id, r.scheduled_at, g.free[r.rank::int] AS number, g.met,
   CASE WHEN r.rank <= cardinality(g.free) - g.excess THEN 1
    WHEN g.seen < (SELECT count(*) FROM slots t WHERE t.slot = r.slot) THEN 0
    WHEN r.overlap = 1 AND r.origin = 0 AND r.attempt = 0 THEN 8 ELSE 2 END AS state,
   CASE WHEN r.rank <= cardinality(g.free) - g.excess THEN nextval('tokens') END AS token
  FROM ranked r JOIN groups g ON g.slot = r.slot
  UNION ALL
  SELECT tid, place, slot, job_id, scheduled_at, NULL, NULL, 1, nextval('tokens') FROM pick WHERE overlap = 0),
 holder AS MATERIALIZED (
  SELECT DISTINCT ON (slot) slot, 'overlap skip: the run of '
   || CASE WHEN slot < 0 THEN coalesce((SELECT j.name || ' at ' FROM jobs j WHERE j.job_id = h.job_id), '') ELSE '' END
   || to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
   || ' (token ' || token || ', on '
   || coalesce((SELECT w.name FROM workers w WHERE w.worker_id = h.worker_id), 'worker ' || worker_id)
   || ') was not over'
   || coalesce((SELECT '; the key ' || g.key || ' lets ' || g.size || ' run, and none of its slots was free'
    FROM slot_groups g WHERE g.group_id = -h.slot), '') AS reason
  FROM (SELECT slot, job_id, scheduled_at, token, $1::bigint AS worker_id FROM verdict
    WHERE state = 1 AND number IS NOT NULL
   UNION ALL
   SELECT slot, job_id, scheduled_at, token, worker_id FROM claims
   WHERE state = 1 AND token = ANY (ARRAY(SELECT met FROM verdict WHERE state = 8))) h
  WHERE EXISTS (SELECT 1 FROM verdict WHERE state = 8)
  ORDER BY slot, token),
 moved AS (UPDATE claims c SET state = v.state, attempt = c.attempt + (v.state = 1)::int, token = v.token,
   worker_id = CASE WHEN v.state = 1 THEN $1::bigint END,
   granted_at = CASE WHEN v.state = 1 THEN statement_timestamp() END,
   lease_expires_at = CASE WHEN v.state = 1 THEN statement_timestamp() + $2::interval END,
   start_by = CASE WHEN v.state <> 1 THEN c.start_by END,
   finished_at = CASE WHEN v.state = 8 THEN statement_timestamp() END,
   reason = CASE WHEN v.state = 8
    THEN coalesce((SELECT h.reason FROM holder h WHERE h.slot = c.slot), 'overlap skip: its slot was busy')
    ELSE c.reason END
  FROM verdict v WHERE c.ctid = v.tid AND v.state <> 0
  RETURNING c.state, c.job_id, c.scheduled_at, c.revision, c.origin, c.token, c.attempt, c.retries, c.slot,
   c.jitter_ms, c.at_most_once, c.lease_expires_at, c.priority, c.losses, c.overlap, v.number, v.place),
 taken AS (UPDATE slots s SET token = m.token FROM moved m
  WHERE m.state = 1 AND m.number IS NOT NULL AND s.slot = m.slot AND s.number = m.number)
SELECT {columns}, k.parked, k.replacing, k.picked
 FROM (SELECT count(*) AS picked,
   (SELECT array_agg(DISTINCT slot) FROM moved WHERE state = 2 AND origin = 0 AND attempt = 0) AS parked,
   (SELECT array_agg(DISTINCT slot) FROM moved WHERE state = 2 AND origin = 0 AND attempt = 0 AND overlap = 3)
   AS replacing FROM pick) k
 LEFT JOIN moved m ON m.state = 1 ORDER BY m.place"""

# Per queue without a rule, priority and class one probe of an index: the next instant at which a claim becomes
# available, and whether paced claims are due now; then whether any of the queues has a rule, and the ledger's place.
_AHEAD = f"""SELECT statement_timestamp(), min(ahead.at), bool_or(due.paced),
  EXISTS (SELECT 1 FROM queues WHERE name = ANY ($1::text[])), (SELECT place FROM cluster WHERE id = 1)
 FROM unnest($1::text[]) q(queue) CROSS JOIN generate_series(-2, 2) p(priority)
 LEFT JOIN LATERAL (
  (SELECT available_at AS at FROM claims WHERE {READY} AND {LIVE} AND queue = q.queue AND priority = p.priority
    AND available_at > statement_timestamp() ORDER BY available_at LIMIT 1)
  UNION ALL
  (SELECT available_at FROM claims WHERE {READY} AND {PACED} AND queue = q.queue AND priority = p.priority
    AND available_at > statement_timestamp() ORDER BY available_at LIMIT 1)) ahead ON true
 LEFT JOIN LATERAL (SELECT true AS paced FROM claims
   WHERE {READY} AND {PACED} AND queue = q.queue AND priority = p.priority
    AND available_at <= statement_timestamp() ORDER BY available_at LIMIT 1) due ON true
 WHERE NOT EXISTS (SELECT 1 FROM queues r WHERE r.name = q.queue OFFSET 0)"""  # noqa: S608 - built from constants

_PLAN_BY_INDEX = """SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_mergejoin = off;
 SET plan_cache_mode = force_generic_plan"""


class Granted(Sequence[Grant]):
    """The grants of a pull, made of its rows when first asked for; how many is known before."""

    def __init__(self, first: tuple[Any, ...], cursor: RawCursor[Any]) -> None:
        self._first = first
        self._cursor = cursor
        self._count = 0 if first[0] is None else cursor.rowcount
        self._grants: list[Grant] | None = None

    def _all(self) -> list[Grant]:
        if self._grants is None:
            rows = (self._first, *self._cursor.fetchall()) if self._count else ()
            self._grants = [grant_of(row) for row in rows]
        return self._grants

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Grant]:
        return iter(self._all())

    def __getitem__(self, place: Any) -> Any:
        if place == 0 and self._grants is None and self._count:
            return grant_of(self._first)
        return self._all()[place]


class Pulled(NamedTuple):
    """What a pull came to. ``parked``: the slots on which it parked ticks that no worker had before (so of `queue` and
    `replace`), which `parking.settle` is to look at; ``replacing``: those of them where one of `replace` is parked."""

    grants: Sequence[Grant]
    picked: int  # claims looked at
    parked: frozenset[int] = frozenset()
    replacing: frozenset[int] = frozenset()


def together(one: Pulled, other: Pulled) -> Pulled:
    """What two pulls of a step came to."""
    return Pulled(
        (*one.grants, *other.grants),
        one.picked + other.picked,
        one.parked | other.parked,
        one.replacing | other.replacing,
    )


@lru_cache(maxsize=64)
def pull_statement(queues: int, *, is_paced: bool, first: int = PRIORITIES[0], is_ruled: bool = False) -> bytes:
    """The pull over so many queues without a rule (``is_ruled``: whatever their rules), one priority ``first``.

    Parameters: worker, lease, room, for the paced class its limit, the queues.
    """
    place = 5 if is_paced else 4
    scans = [
        _SCAN.format(
            ready=READY,
            origins=PACED if is_paced else LIVE,
            queue=place + queue,
            priority=priority,
            unruled="" if is_ruled else _UNRULED.format(queue=place + queue),
            limit=LARGEST_PULL,
        )
        for priority in priorities_from(first)
        for queue in range(queues)
    ]
    return _PULL.format(
        scans="\n  UNION ALL SELECT * FROM ".join(f"{scan} s{number}" for number, scan in enumerate(scans)),
        room=_PACED_ROOM if is_paced else _ROOM,
        replaced=is_replaced(),
        excess=_EXCESS,
        columns=", ".join(f"m.{column}" for column in GRANT_COLUMNS.split(", ")),
    ).encode()


def plan_by_index(connection: psycopg.Connection[Any]) -> None:
    """Have this connection plan its statements as for large tables, and once: plans outlive the size they saw."""
    connection.execute(_PLAN_BY_INDEX.encode())


def pull(
    connection: psycopg.Connection[Any],
    worker_id: int,
    lease: timedelta,
    room: int,
    queues: tuple[str, ...],
    first: int = PRIORITIES[0],
    *,
    is_ruled: bool = False,
) -> RawCursor[Any]:
    """Run the pull of the live class; ``grants_of`` reads the cursor once the pipeline is through.

    ``is_ruled``: the caller holds the gates of these queues' rules, and ``room`` is what they allow.
    """
    statement = pull_statement(len(queues), is_paced=False, first=first, is_ruled=is_ruled)
    return RawCursor(connection).execute(
        statement, (worker_id, lease, min(room, LARGEST_PULL), *queues), binary=True, prepare=True
    )


def look_ahead(connection: psycopg.Connection[Any], queues: tuple[str, ...]) -> RawCursor[Any]:
    """Run the look ahead: one row of now, the next ``available_at``, if paced claims are due, if rules, the place."""
    return RawCursor(connection).execute(_AHEAD.encode(), (list(queues),), binary=True, prepare=True)


def pull_paced(
    connection: psycopg.Connection[Any],
    worker_id: int,
    lease: timedelta,
    room: int,
    limit: int,
    queues: tuple[str, ...],
    first: int = PRIORITIES[0],
    *,
    is_ruled: bool = False,
) -> Pulled:
    """In an open transaction, grant paced claims so that at most ``limit`` run in the cluster.

    One worker at a time may: the gate is a lock that is tried, never waited for, and held until the commit.
    """
    locked = connection.execute(_TRY_GATE, _CATCH_UP_GATE).fetchone()
    if locked is None or not locked[0]:
        return Pulled((), 0)
    statement = pull_statement(len(queues), is_paced=True, first=first, is_ruled=is_ruled)
    cursor: RawCursor[Any] = RawCursor(connection)
    cursor.execute(statement, (worker_id, lease, min(room, LARGEST_PULL), limit, *queues), binary=True, prepare=True)
    return grants_of(cursor)


def grants_of(cursor: RawCursor[Any]) -> Pulled:
    """What a pull returned, of which only the first row is read now."""
    first = cursor.fetchone()
    assert first is not None  # noqa: S101 - the count of what was picked is one row at least
    parked, replacing, picked = first[-3:]
    return Pulled(Granted(first, cursor), picked, frozenset(parked or ()), frozenset(replacing or ()))


def grant_of(row: tuple[Any, ...]) -> Grant:
    """The grant of a row of ``GRANT_COLUMNS``."""
    job_id, scheduled_at, revision, origin, token, attempt, retries, slot, jitter_ms, *others = row[:13]
    jitter = timedelta(milliseconds=jitter_ms) if jitter_ms else _NO_JITTER
    return Grant(
        job_id, scheduled_at, revision, _ORIGINS[origin], token, attempt, retries, slot, jitter, *others
    )  # by place: there is one of them for each run
