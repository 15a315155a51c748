INSERT INTO outbox.control AS k (cursor, seek_seq, seek_to, adopt, updated_at)
SELECT c.name, c.seek_applied + 1,
pg_catalog.jsonb_build_object('created_at', $2::timestamptz, 'id', $3::text) || CASE WHEN $4::boolean
THEN pg_catalog.jsonb_build_object('from', CASE WHEN $5::timestamptz IS NOT NULL
THEN pg_catalog.jsonb_build_object('created_at', $5::timestamptz, 'id', $6::text) END) ELSE '{}'::jsonb END,
$7::text::jsonb || pg_catalog.jsonb_build_object('number', c.seek_applied + 1), pg_catalog.clock_timestamp()
FROM outbox.cursor AS c WHERE c.name = $1
ON CONFLICT (cursor) DO UPDATE SET seek_seq = GREATEST(k.seek_seq + 1, excluded.seek_seq),
seek_to = excluded.seek_to, updated_at = excluded.updated_at, adopt = excluded.adopt ||
pg_catalog.jsonb_build_object('number', GREATEST(k.seek_seq + 1, excluded.seek_seq))
RETURNING seek_seq
