WITH d AS MATERIALIZED (
  SELECT * FROM unnest(%(jobs)s::bigint[], %(ticks)s::timestamptz[], %(tokens)s::bigint[], %(outcomes)s::smallint[],
   %(started)s::timestamptz[], %(finished)s::timestamptz[], %(codes)s::int[], %(errors)s::text[],
   %(retries)s::timestamptz[], %(uses)s::boolean[], %(stdout)s::bigint[], %(stderr)s::bigint[])
   d(job_id, scheduled_at, token, outcome, started_at, finished_at, exit_code, error, retry_at, uses_retry,
    stdout_bytes, stderr_bytes)),
 ok AS (UPDATE claims c SET
   state = CASE WHEN d.outcome = 0 AND c.cancel_requested THEN 7 ELSE d.outcome END,
   available_at = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN coalesce(nullif(d.retry_at, %(never)s), c.available_at)
    ELSE c.available_at END,
   retries = c.retries + (d.uses_retry AND (d.outcome = 0 AND NOT c.cancel_requested))::int,
   token = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN NULL ELSE c.token END,
   worker_id = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN NULL ELSE c.worker_id END,
   granted_at = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN NULL ELSE c.granted_at END,
   started_at = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN NULL ELSE coalesce(nullif(d.started_at, %(never)s), c.started_at) END,
   finished_at = CASE WHEN (d.outcome = 0 AND NOT c.cancel_requested) THEN NULL ELSE d.finished_at END,
   lease_expires_at = NULL
  FROM d WHERE c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at AND c.token = d.token
   AND c.finished_at IS NULL
  RETURNING c.job_id, c.scheduled_at, c.revision, c.attempt, c.state, c.slot, c.overlap, c.jitter_ms, d.token,
   nullif(d.started_at, %(never)s) AS started_at, d.finished_at, nullif(d.exit_code, -2147483648) AS exit_code,
   nullif(d.error, '') AS error, d.stdout_bytes, d.stderr_bytes),
 kept AS (INSERT INTO runs (token, job_id, scheduled_at, attempt, revision, worker_id, outcome, exit_code, error,
   started_at, finished_at, lateness_ms, stdout_bytes, stderr_bytes)
  SELECT token, job_id, scheduled_at, attempt, revision, %(worker)s, state, exit_code, error, started_at, finished_at,
   round(extract(epoch FROM started_at - scheduled_at) * 1000)::bigint - jitter_ms, stdout_bytes, stderr_bytes FROM ok),
 freed AS (UPDATE slots s SET token = NULL FROM ok WHERE s.slot = ok.slot AND s.token = ok.token)
SELECT token, state FROM ok
