SELECT a.action_id, a.tenant, a.status
FROM outbox.action AS a
WHERE a.schedule_id = $1 AND a.planned_at = $2 AND a.manual
ORDER BY a.tenant
