WITH o AS (
    SELECT a.action_id FROM outbox.action AS a WHERE a.action_id = $1 AND a.token = $2 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE outbox.action AS a SET status = 'due', started_at = $3, token = NULL,
    expires_at = NULL, progress = NULL, updated_at = pg_catalog.clock_timestamp()
FROM o
WHERE a.action_id = o.action_id
RETURNING a.schedule_id, a.tenant
