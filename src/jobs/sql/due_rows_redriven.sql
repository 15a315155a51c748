UPDATE outbox.dead_letter SET state = 'redriven', resolved_at = pg_catalog.clock_timestamp(), resolved_by = $4
WHERE cursor = $1 AND message_id = $2 AND created_at = $3 AND state = 'redriving'
