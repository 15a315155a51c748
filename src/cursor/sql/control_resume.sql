UPDATE outbox.control SET paused = false, paused_at = NULL, paused_by = NULL, updated_at = pg_catalog.clock_timestamp()
WHERE cursor = $1 AND paused
