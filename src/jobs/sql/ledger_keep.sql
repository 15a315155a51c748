WITH p AS (SELECT * FROM ROWS FROM (pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS p(id, token)),
free AS (
    SELECT r.request_id
    FROM p
    JOIN outbox.request AS r ON r.request_id = p.id::uuid AND r.token = p.token AND r.status = 'processing'
    FOR NO KEY UPDATE OF r SKIP LOCKED
),
kept AS (
    UPDATE outbox.request AS r SET expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $1::float8),
        updated_at = pg_catalog.clock_timestamp()
    FROM free AS f
    WHERE r.request_id = f.request_id
)
SELECT p.id, r.status = 'unknown' OR f.request_id IS NOT NULL
FROM p
JOIN outbox.request AS r ON r.request_id = p.id::uuid AND r.token = p.token
LEFT JOIN free AS f ON f.request_id = r.request_id
WHERE r.status IN ('processing', 'unknown')
