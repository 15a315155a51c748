SELECT pg_catalog.count(*)
FROM outbox.request
WHERE relay = $1 AND status = 'failed' AND error ->> 'code' IS DISTINCT FROM 'discarded'
