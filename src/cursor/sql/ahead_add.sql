INSERT INTO outbox.ahead AS a (cursor, created_at, message_id, seek, since, written_by)
SELECT c.name, r.created_at, r.id, c.seek_applied, c.created_at, $4
FROM outbox.cursor AS c CROSS JOIN ROWS FROM (pg_catalog.unnest($2::timestamptz[]), pg_catalog.unnest($3::text[])) AS r (created_at, id)
WHERE c.name = $1
ORDER BY r.created_at, r.id
ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET seek = excluded.seek, since = excluded.since,
    written_at = pg_catalog.clock_timestamp(), written_by = excluded.written_by
