INSERT INTO workers (name, address, version, pid, queues, slots, started_at, seen_at)
 VALUES (%s, %s, %s, %s, %s, %s, statement_timestamp(), statement_timestamp()) RETURNING worker_id
