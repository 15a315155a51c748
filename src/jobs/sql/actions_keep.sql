WITH p AS (
    SELECT *
    FROM ROWS FROM (
        pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::text[]), pg_catalog.unnest($4::text[]),
        pg_catalog.unnest($5::float8[])
    ) AS p(id, token, progress, ran)
),
free AS (
    SELECT a.action_id, p.progress, p.ran
    FROM p
    JOIN outbox.action AS a ON a.action_id = p.id AND a.token = p.token
    FOR NO KEY UPDATE OF a SKIP LOCKED
),
kept AS (
    UPDATE outbox.action AS a SET expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $1::float8),
        progress = COALESCE(f.progress, a.progress), updated_at = pg_catalog.clock_timestamp(),
        started_at = COALESCE(pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => f.ran), a.started_at)
    FROM free AS f
    WHERE a.action_id = f.action_id
)
SELECT a.action_id, f.action_id IS NOT NULL
FROM p
JOIN outbox.action AS a ON a.action_id = p.id AND a.token = p.token
LEFT JOIN free AS f ON f.action_id = a.action_id
