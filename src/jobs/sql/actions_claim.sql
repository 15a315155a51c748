WITH f AS (
    SELECT f.action_id, f.started_at
    FROM outbox.action AS f
    WHERE f.action_id = ANY ($4::bigint[]) AND f.status = 'due'
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE outbox.action AS a SET status = 'running', token = $1, claimed_by = $2,
    started_at = pg_catalog.clock_timestamp(), progress = NULL,
    expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $3::float8),
    updated_at = pg_catalog.clock_timestamp()
FROM f
WHERE a.action_id = f.action_id AND a.status = 'due'
RETURNING a.action_id, a.schedule_id, a.schedule, a.tenant, a.planned_at, a.due_at, a.started_at, a.attempts,
    a.payload::text, a.query, a.command, a.on_interrupted, EXTRACT(EPOCH FROM a.timeout)::float8, a.manual, f.started_at
