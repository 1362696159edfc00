WITH f AS MATERIALIZED (
  SELECT c.slot, count(*) AS free FROM unnest(%(jobs)s::bigint[], %(ticks)s::timestamptz[]) d(job_id, scheduled_at)
  JOIN claims c ON c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at WHERE c.overlap <> 0 GROUP BY c.slot),
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
