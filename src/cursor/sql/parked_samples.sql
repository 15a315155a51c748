-- Of some parked keys, the newest row that could be read: whether all that makes the key now ($2) was read of it, and those values. NULL
-- where none could be; the place of the newest row in any case.
SELECT k.key, p.fields @> $2::text[],
    ARRAY(
        SELECT p.field_values[pg_catalog.array_position(p.fields, w.word)]
        FROM pg_catalog.unnest($2::text[]) WITH ORDINALITY AS w(word, n)
        ORDER BY w.n
    ),
    n.created_at, n.message_id
FROM (SELECT s.cursor, s.key FROM outbox.parked_key AS s WHERE s.cursor = $1 ORDER BY s.key LIMIT $3) AS k
LEFT JOIN LATERAL (
    SELECT r.fields, r.field_values FROM outbox.parked AS r
    WHERE r.cursor = k.cursor AND r.key = k.key AND r.fields <> '{}'
    ORDER BY r.created_at DESC, r.seq DESC LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
    SELECT r.created_at, r.message_id FROM outbox.parked AS r
    WHERE r.cursor = k.cursor AND r.key = k.key
    ORDER BY r.created_at DESC, r.seq DESC LIMIT 1
) AS n ON true
