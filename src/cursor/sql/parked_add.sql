-- Rows of keys that are parked already, in order. A row that a seek has led back to stands there once, and in order with those that
-- come with it again.
WITH new AS (
    SELECT DISTINCT ON (u.created_at, u.message_id) u.*
    FROM ROWS FROM (
        pg_catalog.unnest($6::text[]), pg_catalog.unnest($7::timestamptz[]), pg_catalog.unnest($8::text[]), pg_catalog.unnest($9::bigint[])
    ) WITH ORDINALITY AS u(key, created_at, message_id, bytes, n)
    ORDER BY u.created_at, u.message_id, u.n
), parked AS (
    INSERT INTO outbox.parked (cursor, key, source, created_at, message_id, fields, field_values, bytes, parked_by)
    SELECT $1, u.key, $2, u.created_at, u.message_id, $3::text[],
        ($4::bytea[])[(u.n - 1) * pg_catalog.cardinality($3::text[]) + 1 : u.n * pg_catalog.cardinality($3::text[])], u.bytes, $5
    FROM new AS u
    ORDER BY u.n
    ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET seq = DEFAULT
    RETURNING key, xmax = 0 AS is_new
)
UPDATE outbox.parked_key AS k SET rows = k.rows + p.rows
FROM (SELECT key, pg_catalog.count(*) AS rows FROM parked WHERE is_new GROUP BY key) AS p
WHERE k.cursor = $1 AND k.key = p.key
