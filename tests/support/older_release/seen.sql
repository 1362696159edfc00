UPDATE workers SET seen_at = statement_timestamp(), busy = %s, draining = %s WHERE worker_id = %s
