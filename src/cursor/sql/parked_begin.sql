-- The key of a row that has just become a dead letter is parked, and the row stands first.
WITH head AS (
    INSERT INTO outbox.parked (cursor, key, letter, source, created_at, message_id, fields, field_values, bytes, parked_by)
    SELECT d.cursor, $2, d.id, d.source, d.created_at, d.message_id, d.fields, d.field_values,
        (SELECT COALESCE(pg_catalog.sum(pg_catalog.octet_length(v)), 0) FROM pg_catalog.unnest(d.field_values) AS v), $3
    FROM outbox.dead_letter AS d WHERE d.id = $1
    ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET letter = excluded.letter, key = excluded.key
    RETURNING cursor, created_at, message_id
)
INSERT INTO outbox.parked_key (cursor, key, letter, since, since_id, rows, parked_by)
SELECT h.cursor, $2, $1, h.created_at, h.message_id, 1, $3 FROM head AS h
