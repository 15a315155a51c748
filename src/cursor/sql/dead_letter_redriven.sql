UPDATE outbox.dead_letter SET state = 'redriven', resolved_at = pg_catalog.clock_timestamp(), resolved_by = $2
WHERE id = ANY ($1::bigint[])
