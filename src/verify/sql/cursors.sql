SELECT c.name, c.position_created_at, c.position_id, c.created_at
FROM outbox.cursor AS c
WHERE c.name = ANY ($1)
