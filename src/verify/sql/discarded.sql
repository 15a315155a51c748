-- Retention removes the letters that were given up, and keeps the notes of that.
SELECT r.id, r.created_at, o.cursor, o.id
FROM outbox.operation AS o
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(o.detail -> 'rows') AS r (id text, created_at timestamptz)
WHERE o.verb = 'dead-letter discard' AND pg_catalog.split_part(o.cursor, '#', 1) = ANY ($1) AND r.id = ANY ($2)
