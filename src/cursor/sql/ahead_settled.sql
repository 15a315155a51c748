UPDATE outbox.cursor SET token = NULL, updated_at = pg_catalog.clock_timestamp()
WHERE name = $1 AND token ->> 'token' = $2
