-- The row $1 of a released key is refused: it is the dead letter $2 now, and its key waits for that.
WITH head AS (UPDATE outbox.parked SET letter = $2 WHERE seq = $1 RETURNING cursor, key, created_at, message_id)
UPDATE outbox.parked_key AS k SET letter = $2, since = h.created_at, since_id = h.message_id, released = false
FROM head AS h WHERE k.cursor = h.cursor AND k.key = h.key
