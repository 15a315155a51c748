SELECT d.message_id, d.created_at, 'dead_letter'
FROM outbox.dead_letter AS d
WHERE d.cursor = ANY ($1) AND d.message_id = ANY ($2) AND d.state <> 'redriven'
UNION ALL
SELECT c.key[1], c.due_at, 'unknown'
FROM outbox.claim AS c
WHERE c.relay = ANY ($1) AND c.key[1] = ANY ($2) AND c.state = 'unknown'
UNION ALL
-- Rows of a parked key wait for its dead letter.
SELECT p.message_id, p.created_at, 'parked'
FROM outbox.parked AS p
WHERE p.cursor = ANY ($1) AND p.message_id = ANY ($2)
