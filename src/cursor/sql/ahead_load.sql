SELECT a.created_at, a.message_id,
    (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - pg_catalog.max(a.written_at) OVER ()) * 1000000)::bigint
FROM outbox.ahead AS a JOIN outbox.cursor AS c ON c.name = a.cursor
WHERE a.cursor = $1 AND a.seek = c.seek_applied AND a.since = c.created_at
    AND (c.position_created_at IS NULL OR a.created_at >= c.position_created_at)
    AND (a.created_at, a.message_id) IS DISTINCT FROM (c.position_created_at, c.position_id)
