SELECT name, audit, position_created_at FROM outbox.cursor
WHERE name = ANY ($1) AND audit IS NOT NULL AND advanced_at < pg_catalog.clock_timestamp() - interval '1 minute'
FOR UPDATE SKIP LOCKED
