-- Rows that came late between two instants, in the order in which they were found.
SELECT d.message_id
FROM outbox.dead_letter AS d
WHERE d.cursor = $1 AND d.created_at >= $2 AND d.created_at <= $3 AND d.error ->> 'late' IS NOT NULL
ORDER BY d.dead_lettered_at, d.id
