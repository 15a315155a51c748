SELECT a.created_at, a.message_id
FROM outbox.ahead AS a JOIN outbox.cursor AS c ON c.name = a.cursor
WHERE a.cursor = $1 AND a.seek = c.seek_applied AND a.since = c.created_at
