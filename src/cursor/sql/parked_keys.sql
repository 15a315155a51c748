SELECT key, rows, released, since, since_id FROM outbox.parked_key WHERE cursor = $1
