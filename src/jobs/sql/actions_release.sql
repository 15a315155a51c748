WITH f AS (
    SELECT q.action_id
    FROM outbox.action AS q
    WHERE q.relay = $1 AND q.status = 'queued'
        AND NOT EXISTS (
            SELECT
            FROM outbox.action AS o
            WHERE o.schedule_id = q.schedule_id AND o.tenant = q.tenant AND o.relay = q.relay
                AND (
                    o.status IN ('due', 'running') OR o.status = 'queued'
                    AND (o.planned_at, o.action_id) < (q.planned_at, q.action_id)
                )
        )
    FOR NO KEY UPDATE OF q SKIP LOCKED
)
UPDATE outbox.action AS a SET status = 'due', updated_at = pg_catalog.clock_timestamp()
FROM f
WHERE a.action_id = f.action_id AND a.status = 'queued'
