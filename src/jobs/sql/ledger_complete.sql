UPDATE outbox.request AS r SET status = 'completed', completed_at = pg_catalog.clock_timestamp(),
    provider_id = p.provider_id, reply = p.reply, body = NULL, error = NULL, token = NULL, expires_at = NULL,
    updated_at = pg_catalog.clock_timestamp()
FROM ROWS FROM (
    pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]),
    pg_catalog.unnest($4::text[])
) AS p(id, token, provider_id, reply)
WHERE r.request_id = p.id::uuid AND r.token = p.token AND r.status IN ('processing', 'unknown')
RETURNING r.request_id::text
