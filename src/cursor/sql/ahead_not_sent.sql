DELETE FROM outbox.ahead AS a
USING ROWS FROM (pg_catalog.unnest($2::timestamptz[]), pg_catalog.unnest($3::text[])) AS r (created_at, id)
WHERE a.cursor = $1 AND a.created_at = r.created_at AND a.message_id = r.id
