SELECT s.ended_at, s.sums
FROM outbox.audit_slice AS s
WHERE s.cursor = $1 AND s.up_to_created_at < $2
ORDER BY s.ended_at DESC, s.id DESC LIMIT 1
