UPDATE outbox.cursor SET advanced_by = $2, advanced_at = pg_catalog.clock_timestamp(),
    updated_at = pg_catalog.clock_timestamp()
WHERE name = $1
