-- The oldest rows of released keys: at most $2, and no more than $3 bytes before the last of them.
WITH first AS (
    SELECT p.seq, p.created_at, p.bytes
    FROM outbox.parked_key AS k
    CROSS JOIN LATERAL (
        SELECT r.seq, r.created_at, r.bytes FROM outbox.parked AS r
        WHERE r.cursor = k.cursor AND r.key = k.key
        ORDER BY r.created_at, r.seq LIMIT $2
    ) AS p
    WHERE k.cursor = $1 AND k.released
    ORDER BY p.created_at, p.seq LIMIT $2
), sized AS (
    SELECT f.seq, pg_catalog.sum(f.bytes) OVER (ORDER BY f.created_at, f.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM first AS f
)
SELECT p.seq, p.created_at, p.message_id, p.fields, p.field_values, false
FROM outbox.parked AS p JOIN sized AS s ON s.seq = p.seq
WHERE COALESCE(s.before, 0) < $3::bigint
ORDER BY p.created_at, p.seq
