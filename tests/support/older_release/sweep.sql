WITH RECURSIVE parked AS (
  (SELECT slot FROM claims WHERE state = 2 ORDER BY slot LIMIT 1)
  UNION ALL
  SELECT (SELECT c.slot FROM claims c WHERE c.state = 2 AND c.slot > parked.slot ORDER BY c.slot LIMIT 1)
  FROM parked WHERE parked.slot IS NOT NULL),
 f AS MATERIALIZED (SELECT s.slot, count(*) AS free FROM parked JOIN slots s ON s.slot = parked.slot
  WHERE s.token IS NULL GROUP BY s.slot),
 head AS MATERIALIZED (
  SELECT w.tid FROM f CROSS JOIN LATERAL (
   SELECT tid FROM (
    SELECT * FROM (SELECT ctid AS tid FROM claims WHERE state = 2 AND slot = f.slot AND NOT blocked
     AND NOT (origin IN (1, 2, 3)) ORDER BY scheduled_at LIMIT f.free FOR UPDATE SKIP LOCKED) live
    UNION ALL
    SELECT * FROM (SELECT ctid AS tid FROM claims WHERE state = 2 AND slot = f.slot AND NOT blocked
     AND origin IN (1, 2, 3) ORDER BY scheduled_at LIMIT f.free FOR UPDATE SKIP LOCKED) paced) heads
   LIMIT f.free) w
  WHERE EXISTS (SELECT 1 FROM slots s WHERE s.slot = f.slot AND s.token IS NULL))
UPDATE claims c SET state = 0,
  start_by = CASE WHEN c.start_by IS NOT NULL THEN statement_timestamp() + coalesce((SELECT make_interval(secs =>
   coalesce(m.missed ->> 'start_within_ms', m.missed ->> 'grace_ms')::bigint / 1000.0)
  FROM revisions r CROSS JOIN LATERAL (SELECT r.firing::jsonb -> 'missed' AS missed) m
  WHERE r.job_id = c.job_id AND r.revision = c.revision), c.start_by - c.available_at) END
 FROM head WHERE c.ctid = head.tid RETURNING c.job_id, c.scheduled_at
