SELECT c.identity::text
FROM outbox.cursor AS c
WHERE c.name = $1 AND c.identity <> $2::text::jsonb
    AND NOT EXISTS (
        SELECT
        FROM outbox.control AS k
        WHERE k.cursor = c.name AND k.adopt -> 'identity' = $2::text::jsonb
            AND (k.adopt ->> 'root')::bigint = $3::bigint AND k.adopt -> 'relations' = $4::text::jsonb
            AND (k.adopt ->> 'number')::bigint > c.seek_applied
    )
