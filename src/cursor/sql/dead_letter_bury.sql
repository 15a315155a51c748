INSERT INTO outbox.dead_letter AS d (cursor, source, created_at, message_id, sink, target, key, payload,
fields, field_values, error, dead_lettered_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, COALESCE($8, ($10::bytea[])[$13::integer]), $9, $10, $11::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()), $12)
ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET source = excluded.source, sink = excluded.sink,
target = excluded.target, key = excluded.key, payload = excluded.payload, fields = excluded.fields,
field_values = excluded.field_values, error = excluded.error, attempts = d.attempts + 1, state = 'dead',
dead_lettered_at = pg_catalog.clock_timestamp(), dead_lettered_by = excluded.dead_lettered_by,
requested_at = NULL, requested_by = NULL, resolved_at = NULL, resolved_by = NULL
RETURNING d.id
