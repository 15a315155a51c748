-- Rows that came late, in order. One that has an open letter is waited for already; one whose letter is closed is another row
-- under its id by now, if that is known ($11).
INSERT INTO outbox.dead_letter AS d (cursor, source, created_at, message_id, sink, target, fields, field_values, error, attempts,
    state, dead_lettered_by)
SELECT $1, $2, u.created_at, u.id, $3, $4, '{}', '{}',
    $6::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'late', u.transaction), 0, $5, $7
FROM ROWS FROM (
    pg_catalog.unnest($8::timestamptz[]), pg_catalog.unnest($9::text[]), pg_catalog.unnest($10::text[])
) WITH ORDINALITY AS u(created_at, id, transaction, n)
ORDER BY u.n
ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET source = excluded.source, sink = excluded.sink,
    target = excluded.target, key = NULL, payload = NULL, fields = excluded.fields, field_values = excluded.field_values,
    error = excluded.error, state = excluded.state, dead_lettered_at = pg_catalog.clock_timestamp(),
    dead_lettered_by = excluded.dead_lettered_by, requested_at = NULL, requested_by = NULL, resolved_at = NULL, resolved_by = NULL
WHERE d.state IN ('redriven', 'discarded') AND $11::boolean
