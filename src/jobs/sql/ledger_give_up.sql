UPDATE outbox.request AS r SET status = 'unknown', attempts = r.attempts + 1,
    ambiguous = r.ambiguous + $2::boolean::integer, expires_at = NULL,
    error = $3::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
WHERE r.request_id = ANY ($1::text[]::uuid[])
