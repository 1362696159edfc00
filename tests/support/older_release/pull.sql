WITH pick AS MATERIALIZED (
  SELECT first.*, row_number() OVER () AS place FROM (
   SELECT * FROM (SELECT * FROM (SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = $4::text AND priority = 2
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT 500 FOR UPDATE SKIP LOCKED) s0
  UNION ALL SELECT * FROM (SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = $4::text AND priority = 1
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT 500 FOR UPDATE SKIP LOCKED) s1
  UNION ALL SELECT * FROM (SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = $4::text AND priority = 0
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT 500 FOR UPDATE SKIP LOCKED) s2
  UNION ALL SELECT * FROM (SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = $4::text AND priority = -1
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT 500 FOR UPDATE SKIP LOCKED) s3
  UNION ALL SELECT * FROM (SELECT ctid AS tid, job_id, scheduled_at, slot, overlap, origin, attempt FROM claims
   WHERE state = 0 AND NOT blocked AND NOT (origin IN (1, 2, 3)) AND queue = $4::text AND priority = -2
     AND available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())
   ORDER BY available_at LIMIT 500 FOR UPDATE SKIP LOCKED) s4) classes
   WHERE NOT EXISTS (SELECT 1 FROM cluster WHERE halted) LIMIT $3::bigint) first),
 locked AS MATERIALIZED (
  SELECT slot, number, token FROM slots WHERE slot IN (SELECT slot FROM pick WHERE overlap <> 0)
  FOR UPDATE OF slots SKIP LOCKED),
 groups AS (SELECT slot, count(*) AS seen, min(token) AS met,
   array_agg(number ORDER BY number) FILTER (WHERE token IS NULL) AS free FROM locked GROUP BY slot),
 ranked AS (SELECT pick.*, row_number() OVER (PARTITION BY slot ORDER BY scheduled_at, job_id) AS rank
  FROM pick WHERE overlap <> 0),
 verdict AS MATERIALIZED (
  SELECT r.tid, r.place, r.slot, r.scheduled_at, g.free[r.rank::int] AS number, g.met,
   CASE WHEN r.rank <= cardinality(g.free) THEN 1
    WHEN g.seen < (SELECT count(*) FROM slots t WHERE t.slot = r.slot) THEN 0
    WHEN r.overlap = 1 AND r.origin = 0 AND r.attempt = 0 THEN 8 ELSE 2 END AS state,
   CASE WHEN r.rank <= cardinality(g.free) THEN nextval('tokens') END AS token
  FROM ranked r JOIN groups g ON g.slot = r.slot
  UNION ALL
  SELECT tid, place, slot, scheduled_at, NULL, NULL, 1, nextval('tokens') FROM pick WHERE overlap = 0),
 holder AS MATERIALIZED (
  SELECT DISTINCT ON (slot) slot, 'overlap skip: the run of '
   || to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
   || ' (token ' || token || ', on '
   || coalesce((SELECT w.name FROM workers w WHERE w.worker_id = h.worker_id), 'worker ' || worker_id)
   || ') was not over' AS reason
  FROM (SELECT slot, scheduled_at, token, $1::bigint AS worker_id FROM verdict WHERE state = 1 AND number IS NOT NULL
   UNION ALL
   SELECT slot, scheduled_at, token, worker_id FROM claims
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
   c.jitter_ms, c.at_most_once, c.lease_expires_at, v.number, v.place),
 taken AS (UPDATE slots s SET token = m.token FROM moved m
  WHERE m.state = 1 AND m.number IS NOT NULL AND s.slot = m.slot AND s.number = m.number)
SELECT m.job_id, m.scheduled_at, m.revision, m.origin, m.token, m.attempt, m.retries, m.slot, m.jitter_ms, m.at_most_once, m.lease_expires_at, k.picked FROM (SELECT count(*) AS picked FROM pick) k
 LEFT JOIN moved m ON m.state = 1 ORDER BY m.place
