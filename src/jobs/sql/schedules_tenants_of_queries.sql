SELECT DISTINCT s.tenant
FROM outbox.schedule AS s
WHERE s.relay = $1 AND s.enabled AND s.query IS NOT NULL AND (s.next_at IS NULL OR s.next_at < 'infinity')
