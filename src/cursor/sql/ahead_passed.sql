DELETE FROM outbox.ahead AS a USING outbox.cursor AS c
WHERE a.cursor = $1 AND c.name = $1 AND ($2 OR a.created_at < $3 OR (a.created_at, a.message_id) = ($3, $4)
    OR a.seek <> c.seek_applied OR a.since <> c.created_at)
