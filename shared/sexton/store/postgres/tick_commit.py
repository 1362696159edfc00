"""The leader's commit: one statement that moves cursors and writes what was decided for all they step over.

It fences (invariant 3): the cluster row is read FOR SHARE, so that a takeover waits for a commit in flight and a
commit that waits for a takeover sees the new term. In ``race`` term and strategy are read plainly and the cursors'
compare-and-set decides alone; ``COMMIT_IN_PASS`` is a racer's that fires missed ticks: it counts them in the race's
pass, and draws their starts from the catch-up budget itself, so that racers who lose draw none. Per job it is all or
nothing (invariant 2): only what belongs to a moved cursor is written. It returns one row, because a client stopped
while receiving many would keep the locks.

A row that was changed by others is skipped, never waited for, so that locks need no order; a place (`ctid`) that is no
longer the row's moves nothing, as a lost compare-and-set does.

Nothing in it joins two parameter arrays: ``IN (SELECT ... FROM moved) IS TRUE`` is a hash lookup under every plan,
where a join over arrays of unknown length may become a nested loop, quadratic in the batch.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sexton.claims import OnWorkerLost, Origin
from sexton.decisions import CommitResult, NewClaim, TickBatch
from sexton.job_rules import FiringRules
from sexton.races import PassShare
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.places import in_place
from sexton.store.postgres.races import IS_WITHIN, SHARE, share_values

FENCE = f"""fence AS (
  SELECT term = %(term)s AS is_current, term = %(term)s AND NOT halted AS may_write
  FROM cluster WHERE id = 1 AND strategy = 'leader' AND {in_place()} FOR SHARE),
 race AS (
  SELECT term = %(term)s AS is_current, term = %(term)s AND NOT halted AS may_write
  FROM cluster WHERE id = 1 AND strategy = 'race' AND {in_place()})"""  # noqa: S608 - constants
MAY_WRITE = "EXISTS (SELECT 1 FROM fence WHERE may_write UNION ALL SELECT 1 FROM race WHERE may_write)"

_IS_MOVED = "(d.job_id IN (SELECT job_id FROM moved)) IS TRUE"

# The slot group of its job's concurrency key, else the job's own. The map has the grouped ones among the moved jobs.
_SLOT = """CASE WHEN (SELECT map FROM grouped) IS NULL THEN job_id
    ELSE coalesce(((SELECT map FROM grouped) ->> job_id::text)::bigint, job_id) END"""

# A racer's paced claims stand as if the budget were free at `planned_at`: all start later by the same.
_DRAWN = """
 drawn AS (
  UPDATE budget SET next_at = greatest(next_at, clock_timestamp()) + %(span)s::interval
  WHERE id = 1 AND %(span)s::interval > interval '0' AND EXISTS (SELECT 1 FROM moved)
  RETURNING next_at - %(span)s::interval - %(planned_at)s::timestamptz AS shift),
 counted AS (
  UPDATE race_pass SET fired = fired + (SELECT coalesce(sum(d.fired), 0)
    FROM unnest(%(d_jobs)b::bigint[], %(d_fired)b::bigint[]) d(job_id, fired) WHERE (d.job_id IN
      (SELECT job_id FROM moved)) IS TRUE)
  WHERE id = 1 AND EXISTS (SELECT 1 FROM share)),"""
_SHIFT = " + CASE WHEN paced THEN (SELECT shift FROM drawn) ELSE interval '0' END"


def _statement(*, share: str = "", within: str = "", drawn: str = "", shift: str = "", is_within: str = "true") -> str:
    """The commit; with the parts that make it one of a race's pass, or without."""
    paced_array, paced = (", %(c_paced)b::boolean[]", ", paced") if drawn else ("", "")
    return f"""
WITH {FENCE},{share}
 step AS (
  SELECT * FROM unnest(%(jobs)b::bigint[], %(seqs)b::bigint[], %(was)b::timestamptz[], %(upto)b::timestamptz[])
    s(job_id, seq, was, upto)),
 free AS (
  SELECT c.ctid AS tid, s.upto FROM cursors c JOIN step s
    ON c.job_id = s.job_id AND c.seq = s.seq AND c.at = s.was AND s.upto > s.was
  WHERE {MAY_WRITE} AND clock_timestamp() < %(planned_at)s::timestamptz + interval '5 s'{within}
  FOR UPDATE OF c SKIP LOCKED),
 moved AS (
  UPDATE cursors c SET at = f.upto FROM free f WHERE c.ctid = f.tid RETURNING c.job_id, c.slot),
 grouped AS MATERIALIZED (SELECT jsonb_object_agg(job_id, slot) AS map FROM moved WHERE slot IS NOT NULL),{drawn}
 due AS (
  SELECT d.* FROM unnest(%(c_jobs)b::bigint[], %(c_ticks)b::timestamptz[], %(c_revisions)b::integer[],
      %(c_origins)b::smallint[], %(c_queues)b::text[], %(c_priorities)b::smallint[], %(c_overlaps)b::smallint[],
      %(c_available)b::timestamptz[], %(c_start_by)b::timestamptz[], %(c_once)b::boolean[],
      %(c_jitter)b::integer[]{paced_array})
    d(job_id, scheduled_at, revision, origin, queue, priority, overlap, available_at, start_by, at_most_once,
      jitter_ms{paced})
  WHERE {_IS_MOVED}),
 fired AS (
  INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, start_by,
    blocked, at_most_once, jitter_ms, term, written_at)
  SELECT job_id, scheduled_at, revision, origin, queue, priority, overlap, {_SLOT}, available_at{shift},
    start_by{shift}, job_id IN (SELECT job_id FROM pauses WHERE until IS NULL), at_most_once, jitter_ms, %(term)s,
    clock_timestamp()
  FROM due ON CONFLICT DO NOTHING RETURNING available_at),
 skipped AS (
  INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at)
  SELECT d.job_id, d.after, d.upto, d.count, d.reason, d.detail, d.revision, %(term)s, clock_timestamp()
  FROM unnest(%(s_jobs)b::bigint[], %(s_after)b::timestamptz[], %(s_upto)b::timestamptz[], %(s_counts)b::bigint[],
      %(s_reasons)b::text[], %(s_details)b::text[], %(s_revisions)b::integer[])
    d(job_id, after, upto, count, reason, detail, revision)
  WHERE {_IS_MOVED}
  ON CONFLICT (job_id, after) DO UPDATE SET upto = excluded.upto, count = excluded.count, reason = excluded.reason,
    detail = excluded.detail, revision = excluded.revision, term = excluded.term, decided_at = excluded.decided_at),
 held AS (
  INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, reason, made_at, term)
  SELECT d.*, clock_timestamp(), %(term)s
  FROM unnest(%(p_jobs)b::bigint[], %(p_revisions)b::integer[], %(p_after)b::timestamptz[], %(p_upto)b::timestamptz[],
      %(p_counts)b::bigint[], %(p_within)b::timestamptz[], %(p_lapses)b::timestamptz[], %(p_reasons)b::text[])
    d(job_id, revision, after, upto, count, within_from, lapses_at, reason)
  WHERE {_IS_MOVED}
  ON CONFLICT (job_id, after) DO UPDATE SET upto = excluded.upto, count = excluded.count),
 explained AS (
  INSERT INTO decisions (job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held,
    reason, term, decided_at)
  SELECT d.*, %(term)s, clock_timestamp()
  FROM unnest(%(d_jobs)b::bigint[], %(d_revisions)b::integer[], %(d_causes)b::text[], %(d_after)b::timestamptz[],
      %(d_upto)b::timestamptz[], %(d_policies)b::text[], %(d_missed)b::bigint[], %(d_fired)b::bigint[],
      %(d_merged)b::bigint[], %(d_skipped)b::bigint[], %(d_expired)b::bigint[], %(d_held)b::bigint[],
      %(d_reasons)b::text[])
    d(job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held, reason)
  WHERE {_IS_MOVED}
  ON CONFLICT (job_id, after, term, cause) DO UPDATE SET upto = excluded.upto, missed = excluded.missed,
    fired = excluded.fired, merged = excluded.merged, skipped = excluded.skipped, expired = excluded.expired,
    held = excluded.held, reason = excluded.reason, decided_at = excluded.decided_at),
 outcome AS MATERIALIZED (
  SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM due) - (SELECT count(*) FROM fired) AS swallowed),
 alarmed AS (
  INSERT INTO counters (name, value) SELECT 'swallowed', swallowed FROM outcome WHERE swallowed > 0
  ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value)
SELECT coalesce((SELECT is_current FROM fence), (SELECT is_current FROM race), false),
       clock_timestamp() < %(planned_at)s::timestamptz + interval '5 s', moved, swallowed,
       CASE WHEN moved < cardinality(%(jobs)b::bigint[])
            THEN (SELECT array_agg(job_id) FROM (SELECT job_id FROM step EXCEPT SELECT job_id FROM moved) l) END,
       {is_within},
       (SELECT pg_notify('sexton_work', '')
        WHERE EXISTS (SELECT 1 FROM fired WHERE available_at < clock_timestamp() + interval '5 s'))
FROM outcome
"""  # noqa: S608 - the parts are constants of this file


COMMIT = _statement()
COMMIT_IN_PASS = _statement(
    share=f"\n {SHARE},", within=f" AND {IS_WITHIN}", drawn=_DRAWN, shift=_SHIFT, is_within=IS_WITHIN
)
_COMMIT, _COMMIT_IN_PASS = COMMIT.encode(), COMMIT_IN_PASS.encode()
# Of the ledger a stale leader writes nothing; that it tried is counted apart, for those who watch.
_COUNT_STALE = b"""INSERT INTO counters (name, value) VALUES ('stale_commits', 1)
 ON CONFLICT (name) DO UPDATE SET value = counters.value + 1"""
_MILLISECOND = timedelta(milliseconds=1)


def commit(store: PostgresConnection, batch: TickBatch) -> CommitResult:
    """``TickStore.commit``."""
    with store.autocommit() as connection:
        statement = _COMMIT if batch.share is None else _COMMIT_IN_PASS
        row = connection.execute(statement, commit_values(batch)).fetchone()
    assert row is not None  # noqa: S101 - `outcome` has one row
    is_current, is_fresh, moved, swallowed, not_moved, is_within, _ = row
    if not is_current:
        store.unless_contended(lambda: _count_stale(store), None)
    # A batch that became old between its first row and its last has been written.
    lost = tuple(sorted(not_moved or ()))
    return CommitResult(is_current, is_fresh or moved > 0, moved, swallowed, lost, is_within)


def _count_stale(store: PostgresConnection) -> None:
    with store.autocommit() as connection:
        connection.execute(_COUNT_STALE)


def commit_values(batch: TickBatch) -> dict[str, Any]:
    """The batch as arrays. Jobs are in order, so that the rows of the primary key's neighbours come together."""
    moves = sorted(batch.moves, key=lambda move: move.job_id)
    skips, proposals, decisions = batch.skips, batch.proposals, batch.decisions
    return {
        "term": batch.term,
        "planned_at": batch.planned_at,
        "jobs": [move.job_id for move in moves],
        "seqs": [move.seq for move in moves],
        "was": [move.was for move in moves],
        "upto": [move.upto for move in moves],
        **_claim_values(batch),
        **({} if batch.share is None else _pass_values(batch, batch.share)),
        "s_jobs": [skip.job_id for skip in skips],
        "s_after": [skip.after for skip in skips],
        "s_upto": [skip.upto for skip in skips],
        "s_counts": [skip.count for skip in skips],
        "s_reasons": [skip.reason.value for skip in skips],
        "s_details": [skip.detail for skip in skips],
        "s_revisions": [skip.revision for skip in skips],
        "p_jobs": [proposal.job_id for proposal in proposals],
        "p_revisions": [proposal.revision for proposal in proposals],
        "p_after": [proposal.after for proposal in proposals],
        "p_upto": [proposal.upto for proposal in proposals],
        "p_counts": [proposal.count for proposal in proposals],
        "p_within": [proposal.within_from for proposal in proposals],
        "p_lapses": [proposal.lapses_at for proposal in proposals],
        "p_reasons": [proposal.reason for proposal in proposals],
        "d_jobs": [decision.job_id for decision in decisions],
        "d_revisions": [decision.revision for decision in decisions],
        "d_causes": [decision.cause.value for decision in decisions],
        "d_after": [decision.after for decision in decisions],
        "d_upto": [decision.upto for decision in decisions],
        "d_policies": [decision.policy for decision in decisions],
        "d_missed": [decision.missed for decision in decisions],
        "d_fired": [decision.fired for decision in decisions],
        "d_merged": [decision.merged for decision in decisions],
        "d_skipped": [decision.skipped for decision in decisions],
        "d_expired": [decision.expired for decision in decisions],
        "d_held": [decision.held for decision in decisions],
        "d_reasons": [decision.reason for decision in decisions],
    }


def _pass_values(batch: TickBatch, share: PassShare) -> dict[str, Any]:
    return {
        **share_values(share),
        "span": timedelta(seconds=len(share.paced) / share.rate),
        "c_paced": [(claim.job_id, claim.scheduled_at) in share.paced for claim in _in_order(batch)],
    }


def _in_order(batch: TickBatch) -> list[NewClaim]:
    return sorted(batch.claims, key=lambda claim: (claim.job_id, claim.scheduled_at))


def _claim_values(batch: TickBatch) -> dict[str, list[Any]]:
    claims = _in_order(batch)
    known: dict[int, tuple[str, int, int, bool]] = {}  # by identity: equal rules are one object, and hashing is slow
    rules = [
        known.get(id(claim.firing)) or known.setdefault(id(claim.firing), _rules(claim.firing)) for claim in claims
    ]
    origin = {one: int(one) for one in Origin}
    return {
        "c_jobs": [claim.job_id for claim in claims],
        "c_ticks": [claim.scheduled_at for claim in claims],
        "c_revisions": [claim.revision for claim in claims],
        "c_origins": [origin[claim.origin] for claim in claims],
        "c_queues": [rule[0] for rule in rules],
        "c_priorities": [rule[1] for rule in rules],
        "c_overlaps": [rule[2] for rule in rules],
        "c_once": [rule[3] for rule in rules],
        "c_available": [claim.available_at for claim in claims],
        "c_start_by": [claim.start_by for claim in claims],
        "c_jitter": [milliseconds(claim.jitter) for claim in claims],
    }


def _rules(firing: FiringRules) -> tuple[str, int, int, bool]:
    return firing.queue, firing.priority, int(firing.overlap), firing.on_worker_lost is OnWorkerLost.FAIL


def milliseconds(duration: timedelta) -> int:
    """Whole milliseconds, as columns named `_ms` keep them."""
    return duration // _MILLISECOND if duration else 0
