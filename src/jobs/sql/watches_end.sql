UPDATE outbox.schedule_watch SET ended_at = COALESCE($2, pg_catalog.clock_timestamp())
WHERE watch_id = $1 AND ended_at IS NULL
