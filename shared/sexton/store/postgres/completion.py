"""Results become history, and what they free is promoted.

``complete`` is conditional on the token of each run (invariant 4): the claim still names it and has not ended. In one
statement it ends the claim or puts it back, writes the run and its output, and frees the slot row that the token
holds. Back in the queue a claim has no token, so that no second result can name it.

Freeing and promoting are two statements on purpose: the promotion's snapshot must be younger than the wait for a
puller that was just parking a claim on the slot that is being freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import psycopg

from sexton.claims import State
from sexton.store.postgres import arrays
from sexton.store.protocol import RunResult

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # stands for null in arrays, whose types then never change
_NO_CODE = -(2**31)
_CLAIM = attrgetter("job_id", "scheduled_at")

# `back`: to the queue again. A run that was asked to stop is not retried: it counts as cancelled (7).
_BACK = "(d.outcome = 0 AND NOT c.cancel_requested)"

_RESULTS = """WITH d AS MATERIALIZED (
  SELECT * FROM unnest(%(jobs)s::bigint[], %(ticks)s::timestamptz[], %(tokens)s::bigint[], %(outcomes)s::smallint[],
   %(started)s::timestamptz[], %(finished)s::timestamptz[], %(codes)s::int[], %(errors)s::text[],
   %(retries)s::timestamptz[], %(uses)s::boolean[], %(stdout)s::bigint[], %(stderr)s::bigint[],
   %(losses)s::boolean[])
   d(job_id, scheduled_at, token, outcome, started_at, finished_at, exit_code, error, retry_at, uses_retry,
    stdout_bytes, stderr_bytes, is_loss)),"""
# As most are: exit code 0 and not a word.
_PLAIN_RESULTS = f"""WITH d AS MATERIALIZED (
  SELECT job_id, scheduled_at, token, {int(State.SUCCEEDED)}::smallint AS outcome, started_at, finished_at,
   0 AS exit_code, ''::text AS error, NULL::timestamptz AS retry_at, false AS uses_retry, 0::bigint AS stdout_bytes,
   0::bigint AS stderr_bytes, false AS is_loss
  FROM unnest(%(jobs)s::bigint[], %(ticks)s::timestamptz[], %(tokens)s::bigint[], %(started)s::timestamptz[],
   %(finished)s::timestamptz[]) d(job_id, scheduled_at, token, started_at, finished_at)),"""  # noqa: S608 - constants

_COMPLETE = f"""
 ok AS (UPDATE claims c SET
   state = CASE WHEN d.outcome = 0 AND c.cancel_requested THEN 7 ELSE d.outcome END,
   available_at = CASE WHEN {_BACK} THEN coalesce(nullif(d.retry_at, %(never)s), c.available_at)
    ELSE c.available_at END,
   retries = c.retries + (d.uses_retry AND {_BACK})::int,
   losses = c.losses + d.is_loss::int,
   token = CASE WHEN {_BACK} THEN NULL ELSE c.token END,
   worker_id = CASE WHEN {_BACK} THEN NULL ELSE c.worker_id END,
   granted_at = CASE WHEN {_BACK} THEN NULL ELSE c.granted_at END,
   started_at = CASE WHEN {_BACK} THEN NULL ELSE coalesce(nullif(d.started_at, %(never)s), c.started_at) END,
   finished_at = CASE WHEN {_BACK} THEN NULL ELSE d.finished_at END,
   lease_expires_at = NULL
  FROM d WHERE c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at AND c.token = d.token
   AND c.finished_at IS NULL
  RETURNING c.job_id, c.scheduled_at, c.revision, c.attempt, c.state, c.slot, c.overlap, c.jitter_ms, d.token,
   nullif(d.started_at, %(never)s) AS started_at, d.finished_at, nullif(d.exit_code, {_NO_CODE}) AS exit_code,
   nullif(d.error, '') AS error, d.stdout_bytes, d.stderr_bytes),
 kept AS (INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, exit_code, error,
   started_at, finished_at, lateness_ms, stdout_bytes, stderr_bytes)
  SELECT token, job_id, scheduled_at, attempt, revision, %(worker)s, state, exit_code, error, started_at, finished_at,
   round(extract(epoch FROM started_at - scheduled_at) * 1000)::bigint - jitter_ms, stdout_bytes, stderr_bytes FROM ok),
 freed AS (UPDATE slots s SET token = NULL FROM ok WHERE s.slot = ok.slot AND s.token = ok.token)""".encode()  # noqa: S608 - built from constants
_ACCEPTED = b"\nSELECT token, state FROM ok"
_PLAIN = _PLAIN_RESULTS.encode() + _COMPLETE + _ACCEPTED

# Put before the last line where there is output, which most runs of no-ops have not.
_KEEP_OUTPUT = b""",
 said AS (INSERT INTO outputs (token, stdout, stderr) SELECT o.token, o.stdout, o.stderr
  FROM unnest(%(speakers)s::bigint[], %(out)s::bytea[], %(err)s::bytea[]) o(token, stdout, stderr)
  JOIN ok ON ok.token = o.token)"""

# The allowance of a claim to start anew, from its revision; where that is gone, the one it was written with.
ALLOWANCE = """coalesce((SELECT make_interval(secs =>
   coalesce(m.missed ->> 'start_within_ms', m.missed ->> 'grace_ms')::bigint / 1000.0)
  FROM revisions r CROSS JOIN LATERAL (SELECT r.firing::jsonb -> 'missed' AS missed) m
  WHERE r.job_id = c.job_id AND r.revision = c.revision), c.start_by - c.available_at)"""

REPLACES = "overlap = 3 AND origin = 0 AND attempt = 0"

# Of each slot first the newest tick that replaces (for it a run was stopped), then the oldest parked claims, live ones
# before paced ones (a paced claim may have to wait for its class, and must not keep a live one waiting meanwhile). Its
# place in the queue stays that of its available_at; only start_by is set anew, so that the time it was parked does not
# count.
_PROMOTE = f"""head AS MATERIALIZED (
  SELECT w.tid FROM f CROSS JOIN LATERAL (
   (SELECT tid FROM (
    SELECT * FROM (SELECT ctid AS tid FROM claims WHERE state = 2 AND slot = f.slot AND {REPLACES} AND NOT blocked
     ORDER BY scheduled_at DESC, job_id DESC LIMIT f.free FOR UPDATE SKIP LOCKED) replacing
    UNION ALL
    SELECT * FROM (SELECT ctid AS tid FROM claims WHERE state = 2 AND slot = f.slot AND NOT blocked
     AND NOT (origin IN (1, 2, 3)) AND NOT ({REPLACES}) ORDER BY scheduled_at LIMIT f.free FOR UPDATE SKIP LOCKED) live
    UNION ALL
    SELECT * FROM (SELECT ctid AS tid FROM claims WHERE state = 2 AND slot = f.slot AND NOT blocked
     AND origin IN (1, 2, 3) ORDER BY scheduled_at LIMIT f.free FOR UPDATE SKIP LOCKED) paced) heads
   LIMIT f.free)) w
  WHERE EXISTS (SELECT 1 FROM slots s WHERE s.slot = f.slot AND s.token IS NULL))
UPDATE claims c SET state = 0,
  start_by = CASE WHEN c.start_by IS NOT NULL THEN statement_timestamp() + {ALLOWANCE} END
 FROM head WHERE c.ctid = head.tid RETURNING c.job_id, c.scheduled_at"""  # noqa: S608 - built from constants

# Where no claim is parked at all, none of the slots is looked at.
_PROMOTE_AFTER = f"""WITH f AS MATERIALIZED (
  SELECT c.slot, count(*) AS free FROM unnest(%(jobs)s::bigint[], %(ticks)s::timestamptz[]) d(job_id, scheduled_at)
  JOIN claims c ON c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at
  WHERE c.overlap <> 0 AND EXISTS (SELECT 1 FROM claims WHERE state = 2) GROUP BY c.slot),
 {_PROMOTE}""".encode()  # noqa: S608 - built from constants

_PROMOTE_SLOTS = f"""WITH f AS MATERIALIZED (
  SELECT slot, count(*) AS free FROM slots WHERE slot = ANY (%(slots)s::bigint[]) AND token IS NULL GROUP BY slot),
 {_PROMOTE}""".encode()  # noqa: S608 - built from constants

# What was promoted for a key may be of a queue that nobody serves now, or whose limit holds it back: what waits for the
# same key in another queue is promoted beside it.
_OF_EACH_QUEUE = """
   UNION ALL
   SELECT * FROM (SELECT c.ctid AS tid FROM (
     SELECT DISTINCT ON (queue) job_id, scheduled_at FROM claims
     WHERE f.slot < 0 AND state = 2 AND slot = f.slot AND NOT blocked
     ORDER BY queue, origin IN (1, 2, 3), scheduled_at) o
    JOIN claims c USING (job_id, scheduled_at) WHERE c.state = 2 FOR UPDATE OF c SKIP LOCKED) others"""

_SWEEP = f"""WITH RECURSIVE parked AS (
  (SELECT slot FROM claims WHERE state = 2 ORDER BY slot LIMIT 1)
  UNION ALL
  SELECT (SELECT c.slot FROM claims c WHERE c.state = 2 AND c.slot > parked.slot ORDER BY c.slot LIMIT 1)
  FROM parked WHERE parked.slot IS NOT NULL),
 f AS MATERIALIZED (SELECT s.slot, count(*) AS free FROM parked JOIN slots s ON s.slot = parked.slot
  WHERE s.token IS NULL GROUP BY s.slot),
 {_PROMOTE.replace("LIMIT f.free)) w", f"LIMIT f.free){_OF_EACH_QUEUE}) w")}""".encode()  # noqa: S608 - built from constants


class Packed(NamedTuple):
    """Results as they go over the wire. ``may_go_back``: one of them may make its claim ready again, or cancelled."""

    results: tuple[RunResult, ...]
    statement: bytes
    arguments: dict[str, object]
    may_go_back: bool


def pack(results: tuple[RunResult, ...]) -> Packed:
    """Sorted by claim, so that writers of several claims lock them in one order."""
    ordered = sorted(results, key=_CLAIM)
    job_ids, at, tokens, _, outcomes, finished, started, codes, errors, retries, uses, out, err, *sizes, losses = zip(
        *ordered, strict=True
    )  # in the order of the fields of a result
    arguments: dict[str, object] = {
        "jobs": arrays.big_ints(job_ids),
        "ticks": arrays.instants(at),
        "tokens": arrays.big_ints(tokens),
        "started": arrays.instants([instant or _NEVER for instant in started]),
        "finished": arrays.instants(finished),
        "never": _NEVER,
    }
    said_or_odd = any(map(any, (codes, errors, uses, out, err, *sizes, losses))) or None in codes
    if {*outcomes} == {State.SUCCEEDED} and not said_or_odd:
        return Packed(results, _PLAIN, arguments, False)
    arguments |= {
        "outcomes": arrays.small_ints(outcomes),
        "codes": arrays.ints([_NO_CODE if code is None else code for code in codes]),
        "errors": arrays.texts(errors),
        "retries": arrays.instants([instant or _NEVER for instant in retries]),
        "uses": arrays.booleans(uses),
        "stdout": arrays.big_ints(sizes[0]),
        "stderr": arrays.big_ints(sizes[1]),
        "losses": arrays.booleans(losses),
    }
    statement = _RESULTS.encode() + _COMPLETE
    if any(out) or any(err):
        spoken = [result for result in ordered if result.stdout or result.stderr]
        statement += _KEEP_OUTPUT
        arguments["speakers"] = arrays.big_ints([result.token for result in spoken])
        arguments["out"] = arrays.blobs([result.stdout for result in spoken])
        arguments["err"] = arrays.blobs([result.stderr for result in spoken])
    may_go_back = State.READY in outcomes or State.CANCELLED in outcomes
    return Packed(results, statement + _ACCEPTED, arguments, may_go_back)


def complete(
    connection: psycopg.Connection[Any], worker_id: int, packed: Packed
) -> tuple[psycopg.Cursor[Any], psycopg.Cursor[Any]]:
    """Write results and promote what they free; the cursors give ``(token, state)`` and ``(job_id, scheduled_at)``."""
    arguments = packed.arguments | {"worker": worker_id}
    written = connection.execute(packed.statement, arguments, prepare=True)
    freeing = {"jobs": arguments["jobs"], "ticks": arguments["ticks"]}
    return written, connection.execute(_PROMOTE_AFTER, freeing, prepare=True)


def promote_after(connection: psycopg.Connection[Any], claims: Sequence[tuple[int, datetime]]) -> None:
    """Promote for each of these claims, which held a slot, the oldest claim parked on it."""
    jobs, ticks = [job_id for job_id, _ in claims], [scheduled_at for _, scheduled_at in claims]
    connection.execute(_PROMOTE_AFTER, {"jobs": jobs, "ticks": ticks}, prepare=False)


def promote_slots(connection: psycopg.Connection[Any], slots: Sequence[int]) -> None:
    """Promote for every free row of these slots the oldest parked claim."""
    if slots:
        connection.execute(_PROMOTE_SLOTS, {"slots": list(slots)}, prepare=False)


def sweep(connection: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    """Promote for every free slot row the oldest parked claim of its group."""
    return connection.execute(_SWEEP, prepare=False)
