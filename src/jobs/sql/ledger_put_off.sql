UPDATE outbox.request SET status = 'pending', attempts = attempts + 1,
    first_tried_at = CASE WHEN ambiguous > 0 THEN first_tried_at END,
    not_before = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $2::float8),
    token = NULL, expires_at = NULL,
    error = $3::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
WHERE request_id = $1::text::uuid AND body IS NULL
    AND (status = 'pending' OR status = 'processing' AND expires_at <= pg_catalog.clock_timestamp())
