-- Rows whose letters the sink has accepted.
SELECT d.message_id, d.created_at
FROM outbox.dead_letter AS d
WHERE d.cursor = ANY ($1) AND d.message_id = ANY ($2) AND d.state = 'redriven'
