UPDATE outbox.request SET status = $4, attempts = attempts + 1, ambiguous = ambiguous + $5::boolean::integer,
    expires_at = NULL, error = $3::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
WHERE request_id = $1::text::uuid AND token = $2 AND status = 'processing'
