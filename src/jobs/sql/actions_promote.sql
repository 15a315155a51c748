WITH f AS (
    SELECT f.action_id
    FROM outbox.action AS f
    WHERE f.status = 'queued'
        AND f.action_id IN (
            SELECT (
                SELECT q.action_id
                FROM outbox.action AS q
                WHERE q.schedule_id = p.id AND q.tenant = p.tenant AND q.status = 'queued' AND q.relay = $3
                ORDER BY q.planned_at LIMIT 1
            )
            FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::text[])) AS p(id, tenant)
        )
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE outbox.action AS a SET status = 'due', updated_at = pg_catalog.clock_timestamp()
FROM f
WHERE a.action_id = f.action_id AND a.status = 'queued'
    AND NOT EXISTS (
        SELECT
        FROM outbox.action AS o
        WHERE o.schedule_id = a.schedule_id AND o.tenant = a.tenant AND o.relay = a.relay
            AND o.status IN ('due', 'running')
    )
