UPDATE outbox.request AS r SET status = 'processing', token = $1, claimed_by = $2,
    claimed_at = pg_catalog.clock_timestamp(),
    expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $3::float8),
    first_tried_at = COALESCE(r.first_tried_at, pg_catalog.clock_timestamp()), body = COALESCE(r.body, p.body),
    body_hash = COALESCE(r.body_hash, pg_catalog.sha256(p.body)), ambiguous = r.ambiguous + p.interrupted::integer,
    updated_at = pg_catalog.clock_timestamp()
FROM ROWS FROM (
    pg_catalog.unnest($4::text[]), pg_catalog.unnest($5::bytea[]), pg_catalog.unnest($6::boolean[])
) AS p(id, body, interrupted)
WHERE r.request_id = p.id::uuid
