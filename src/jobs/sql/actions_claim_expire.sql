WITH o AS (
    SELECT a.action_id
    FROM outbox.action AS a
    WHERE a.relay = $1 AND a.status = 'running' AND a.expires_at <= pg_catalog.statement_timestamp()
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox.action AS a SET status = CASE a.on_interrupted WHEN 'retry' THEN 'due' ELSE 'failed' END,
    finished_at = CASE a.on_interrupted WHEN 'retry' THEN NULL ELSE pg_catalog.clock_timestamp() END,
    try_at = pg_catalog.clock_timestamp() + CASE WHEN a.attempts < 1 THEN interval '0' ELSE pg_catalog.make_interval(
        secs => LEAST(300, pg_catalog.power(2, LEAST(a.attempts, 10) - 1))::float8
    ) END,
    attempts = a.attempts + 1, token = NULL, expires_at = NULL, progress = NULL,
    error = pg_catalog.jsonb_build_object(
        'at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', 'interrupted',
        'message', 'outcome unknown: replica ' || a.claimed_by || ' ended or was cut off while it had the action',
        'hint', 'on_interrupted of its schedule says whether it is retried.'
    ),
    updated_at = pg_catalog.clock_timestamp()
FROM o
WHERE a.action_id = o.action_id
RETURNING a.action_id, a.schedule_id, a.tenant, a.schedule, a.status
