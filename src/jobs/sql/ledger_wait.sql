UPDATE outbox.request SET status = 'pending', attempts = attempts + $4, ambiguous = ambiguous + $5::boolean::integer,
    first_tried_at = CASE WHEN ambiguous = 0 AND NOT $5 THEN NULL ELSE first_tried_at END,
    not_before = CASE WHEN $6::float8 > 0 THEN pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6)
    ELSE due_at END,
    token = NULL, expires_at = NULL,
    error = $3::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
WHERE request_id = $1::text::uuid AND token = $2 AND status = 'processing'
