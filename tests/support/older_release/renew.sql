WITH mine AS MATERIALIZED (
  SELECT token, cancel_requested FROM claims
  WHERE state = 1 AND worker_id = %(worker)s AND token = ANY (%(tokens)s::bigint[])),
 free AS MATERIALIZED (
  SELECT ctid AS tid FROM claims WHERE state = 1 AND worker_id = %(worker)s AND token = ANY (%(tokens)s::bigint[])
  FOR UPDATE SKIP LOCKED),
 renewed AS (UPDATE claims c SET lease_expires_at = statement_timestamp() + %(lease)s
  FROM free WHERE c.ctid = free.tid)
SELECT statement_timestamp(), array_agg(token), array_agg(token) FILTER (WHERE cancel_requested) FROM mine
