SELECT key, rows, released FROM outbox.parked_key WHERE cursor = $1
