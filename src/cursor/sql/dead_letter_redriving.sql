SELECT id, created_at, message_id, fields, field_values, error ? 'late' FROM outbox.dead_letter
WHERE state = 'redriving' AND id IN (SELECT l.id FROM
(SELECT id, pg_catalog.sum(pg_catalog.octet_length(payload))
OVER (ORDER BY created_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
FROM (SELECT id, created_at, payload FROM outbox.dead_letter
WHERE cursor = $1 AND state = 'redriving' ORDER BY created_at, id LIMIT $2) AS first) AS l
WHERE COALESCE(l.before, 0) < $3)
ORDER BY created_at, id FOR UPDATE SKIP LOCKED
