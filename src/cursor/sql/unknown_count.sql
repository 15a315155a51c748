SELECT (SELECT pg_catalog.count(*) FROM outbox.claim WHERE relay = $1 AND state = 'unknown') + (
    SELECT pg_catalog.count(*) FROM outbox.request WHERE relay = $1 AND status = 'unknown'
)
