UPDATE outbox.claim SET state = $4, attempts = attempts + 1, expires_at = NULL,
    error = $5::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
WHERE relay = $1 AND key = $2::text[] AND token = $3
