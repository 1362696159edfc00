WITH dead AS MATERIALIZED (
  SELECT ctid AS tid, token, slot, overlap FROM claims WHERE state = 1 AND lease_expires_at < statement_timestamp()
  ORDER BY lease_expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED),
 locked AS MATERIALIZED (
  SELECT s.slot, s.number, s.token FROM slots s JOIN dead ON s.slot = dead.slot AND s.token = dead.token
  FOR UPDATE OF s SKIP LOCKED),
 ripe AS MATERIALIZED (
  SELECT dead.tid, dead.token AS lost_token, locked.number, c.worker_id AS lost_worker, c.started_at AS lost_started,
   c.lease_expires_at AS lost_lease,
   CASE WHEN c.at_most_once AND c.started_at IS NOT NULL OR c.losses + 1 >= %(poison)s THEN 6
    WHEN c.cancel_requested THEN 7 ELSE 0 END AS verdict,
   'lease lost: '
    || coalesce((SELECT w.name FROM workers w WHERE w.worker_id = c.worker_id), 'worker ' || c.worker_id)
    || ' did not renew it by '
    || to_char(c.lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || CASE WHEN c.at_most_once AND c.started_at IS NOT NULL THEN '; started, and on_worker_lost is fail'
     WHEN c.losses + 1 >= %(poison)s THEN '; ' || (c.losses + 1) || ' leases lost, it may be what kills workers'
     WHEN c.cancel_requested THEN '; cancelled' ELSE '' END AS error
  FROM dead JOIN claims c ON c.ctid = dead.tid LEFT JOIN locked ON locked.slot = dead.slot AND locked.token = dead.token
  WHERE locked.number IS NOT NULL
   OR NOT EXISTS (SELECT 1 FROM slots s WHERE s.slot = dead.slot AND s.token = dead.token)),
 moved AS (UPDATE claims c SET state = r.verdict, losses = c.losses + 1, lease_expires_at = NULL,
   token = CASE WHEN r.verdict <> 0 THEN c.token END, worker_id = CASE WHEN r.verdict <> 0 THEN c.worker_id END,
   granted_at = CASE WHEN r.verdict <> 0 THEN c.granted_at END,
   started_at = CASE WHEN r.verdict <> 0 THEN c.started_at END,
   finished_at = CASE WHEN r.verdict <> 0 THEN statement_timestamp() END,
   reason = CASE WHEN r.verdict <> 0 THEN r.error ELSE c.reason END
  FROM ripe r WHERE c.ctid = r.tid
  RETURNING c.job_id, c.scheduled_at, c.revision, c.attempt, c.state, c.slot, c.jitter_ms, r.*),
 kept AS (INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, error, started_at,
   finished_at, lateness_ms)
  SELECT lost_token, job_id, scheduled_at, attempt, revision, lost_worker, state, error, lost_started,
   statement_timestamp(), round(extract(epoch FROM lost_started - scheduled_at) * 1000)::bigint - jitter_ms
  FROM moved),
 freed AS (UPDATE slots s SET token = NULL FROM moved m
  WHERE s.slot = m.slot AND s.number = m.number AND s.token = m.lost_token)
SELECT job_id, scheduled_at, lost_token, state FROM moved
