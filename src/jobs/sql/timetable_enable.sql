UPDATE outbox.schedule AS s SET enabled = $2
WHERE s.schedule_id = $1 AND s.enabled <> $2
RETURNING s.relay, s.name, s.tenant
