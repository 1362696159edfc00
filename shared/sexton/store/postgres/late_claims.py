"""Claims that no worker took within ``start_within``, on PostgreSQL: read per job, decided together.

Who holds the job's cursor row decides (SKIP LOCKED, fenced like a commit). All or nothing: if one of the claims was
granted or decided meanwhile, the counts of the plan no longer hold, and the job is read and planned again.

What is held extends the job's open proposal of such claims, never that of a gap, whose ticks its skip record says. One
that is answered while this waits for it is open no more when it is had: another is made.
"""

from __future__ import annotations

from sexton.decisions import LatePlan
from sexton.store.hold_rules import IS_GAP, OPENED_ANEW
from sexton.store.late_claims import ENDED_JOBS, WAITING, ended_job, late_job_rows, late_values
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.job_rows import read_jobs
from sexton.store.postgres.races import IS_WITHIN, SHARE, share_values
from sexton.store.postgres.tick_commit import FENCE, MAY_WRITE
from sexton.store.protocol import LateJobRow

# The inner limit bounds the scan where one job alone has very many late claims.
_LATE_JOBS = """
SELECT DISTINCT job_id FROM (
  SELECT job_id FROM claims
  WHERE state = 0 AND start_by IS NOT NULL AND start_by < statement_timestamp() AND NOT blocked
  ORDER BY start_by LIMIT 20000) late
ORDER BY job_id LIMIT %(limit)s
"""
_LATE_CLAIMS = """
SELECT c.job_id, c.scheduled_at, c.origin, c.jitter_ms, c.revision FROM claims c
WHERE c.job_id = ANY (%(job_ids)s::bigint[]) AND c.state = 0 AND c.attempt = 0 AND NOT c.blocked
  AND (c.start_by < statement_timestamp() OR (c.origin = 1 AND c.start_by IS NULL))
ORDER BY c.job_id, c.scheduled_at
"""
_REVISIONS = """
SELECT r.job_id, r.revision, r.schedule, r.firing, r.in_force_since, r.in_force_until
FROM unnest(%(job_ids)s::bigint[], %(revisions)s::integer[]) n(job_id, revision)
JOIN revisions r USING (job_id, revision)
"""

_WAITING = WAITING.format("%(limit)s").encode()
_IS_GAP = IS_GAP.format("q")
_ENDED = f"{ENDED_JOBS} AND j.job_id = ANY (%(job_ids)s::bigint[])"


def _statement(share: str = "", within: str = "", counted: str = "") -> str:
    """The decision; with the parts that make it one of a race's pass, or without."""
    return f"""
WITH {FENCE},{share}
 cursor AS MATERIALIZED (
  SELECT job_id FROM cursors WHERE job_id = %(job_id)s AND seq = %(seq)s AND {MAY_WRITE}{within}
  FOR UPDATE SKIP LOCKED),
 verdict AS MATERIALIZED (
  SELECT * FROM unnest(%(ticks)s::timestamptz[], %(states)s::smallint[], %(origins)s::smallint[],
      %(available)s::timestamptz[])
    v(scheduled_at, state, origin, available_at)),
 target AS MATERIALIZED (
  SELECT c.scheduled_at FROM claims c
  WHERE c.job_id = %(job_id)s AND c.scheduled_at = ANY (%(ticks)s::timestamptz[]) AND EXISTS (SELECT 1 FROM cursor)
    AND c.state = 0 AND c.attempt = 0 AND NOT c.blocked
    AND (c.start_by < statement_timestamp() OR (c.origin = 1 AND c.start_by IS NULL))
  ORDER BY c.scheduled_at FOR UPDATE OF c SKIP LOCKED),
 whole AS MATERIALIZED (
  SELECT count(*) AS decided FROM target HAVING count(*) = cardinality(%(ticks)s::timestamptz[])),
 changed AS (
  UPDATE claims c SET state = v.state, start_by = NULL,
    origin = CASE WHEN v.state = 0 THEN v.origin ELSE c.origin END,
    available_at = CASE WHEN v.state = 0 THEN coalesce(v.available_at, c.available_at) ELSE c.available_at END,
    finished_at = CASE WHEN v.state = 0 THEN NULL ELSE clock_timestamp() END,
    reason = %(reason)s
  FROM verdict v, whole
  WHERE c.job_id = %(job_id)s AND c.scheduled_at = v.scheduled_at AND c.state = 0 AND whole.decided > 0
  RETURNING c.state, c.available_at),
 extended AS (
  UPDATE proposals p SET upto = greatest(p.upto, %(p_upto)s::timestamptz), count = p.count + %(p_count)s::bigint,
    after = least(p.after, %(p_after)s::timestamptz), lapses_at = greatest(p.lapses_at, %(p_lapses)s::timestamptz)
  FROM whole
  WHERE whole.decided > 0 AND %(p_count)s::bigint > 0 AND p.state = 'open' AND p.proposal_id =
    (SELECT max(q.proposal_id) FROM proposals q WHERE q.job_id = %(job_id)s AND q.state = 'open' AND NOT {_IS_GAP})
  RETURNING 1),
 made AS (
  INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, made_at, term, reason)
  SELECT %(job_id)s, %(p_revision)s, %(p_after)s::timestamptz, %(p_upto)s::timestamptz, %(p_count)s::bigint,
    %(p_within)s::timestamptz, %(p_lapses)s::timestamptz, clock_timestamp(), %(term)s, %(p_reason)s
  FROM whole WHERE %(p_count)s::bigint > 0 AND NOT EXISTS (SELECT 1 FROM extended)
  ON CONFLICT (job_id, after) DO UPDATE SET {OPENED_ANEW}),
 explained AS (
  INSERT INTO decisions (job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held,
    reason, term, decided_at)
  SELECT %(job_id)s, %(d_revision)s, %(d_cause)s, %(d_after)s::timestamptz, %(d_upto)s::timestamptz, %(d_policy)s,
    %(d_missed)s, %(d_fired)s, %(d_merged)s, %(d_skipped)s, %(d_expired)s, %(d_held)s, %(reason)s, %(term)s,
    clock_timestamp() FROM whole
  ON CONFLICT (job_id, after, term, cause) DO UPDATE SET upto = excluded.upto, missed = excluded.missed,
    fired = excluded.fired, merged = excluded.merged, skipped = excluded.skipped, expired = excluded.expired,
    held = excluded.held, reason = excluded.reason, decided_at = excluded.decided_at){counted}
SELECT decided, (SELECT pg_notify('sexton_work', '') WHERE EXISTS
    (SELECT 1 FROM changed WHERE state = 0 AND available_at < clock_timestamp() + interval '5 s'))
FROM whole
"""  # noqa: S608 - the parts are constants


_COUNTED = """,
 counted AS (
  UPDATE race_pass SET fired = fired + %(fires)s FROM whole WHERE id = 1 AND whole.decided > 0)"""
_DECIDE = _statement().encode()
_DECIDE_IN_PASS = _statement(f"\n {SHARE},", f" AND {IS_WITHIN}", _COUNTED).encode()


def waiting_catch_up(store: PostgresConnection, limit: int) -> int:
    """``TickStore.waiting_catch_up``."""
    with store.autocommit() as connection:
        (found,) = connection.execute(_WAITING, {"limit": limit}).fetchone() or (0,)
    return int(found)


def late_jobs(store: PostgresConnection, limit: int) -> tuple[LateJobRow, ...]:
    """``TickStore.late_jobs``."""
    with store.autocommit() as connection:
        job_ids = [row[0] for row in connection.execute(_LATE_JOBS, {"limit": limit})]
        if not job_ids:
            return ()
        claims = connection.execute(_LATE_CLAIMS, {"job_ids": job_ids}).fetchall()
        newest = {job_id: revision for job_id, _, _, _, revision in claims}
        values = {"job_ids": list(newest), "revisions": list(newest.values())}
        revisions = connection.execute(_REVISIONS, values).fetchall()
        ended = connection.execute(_ENDED, {"job_ids": list(newest)}).fetchall()
    jobs = {row[0]: ended_job(*row) for row in ended}
    jobs.update((job.job_id, job) for job in read_jobs(store, list(newest)))
    return late_job_rows(claims, revisions, jobs)


def decide_late(store: PostgresConnection, plan: LatePlan) -> int:
    """``TickStore.decide_late``."""
    if not plan.verdicts:
        return 0
    with store.autocommit() as connection:
        if plan.share is None:
            row = connection.execute(_DECIDE, late_values(plan)).fetchone()
        else:
            values = {**late_values(plan), **share_values(plan.share)}
            row = connection.execute(_DECIDE_IN_PASS, values).fetchone()
    return 0 if row is None else int(row[0])
