SELECT a.action_id, a.tenant, a.schedule_id
FROM outbox.action AS a
WHERE a.relay = $1 AND a.status = 'due' AND a.tenant = '' AND a.try_at <= pg_catalog.statement_timestamp()
ORDER BY a.try_at, a.action_id LIMIT $2
