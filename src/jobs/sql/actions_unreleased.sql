SELECT EXISTS (
    SELECT
    FROM outbox.action AS q
    WHERE q.relay = $1 AND q.status = 'queued'
        AND NOT EXISTS (
            SELECT
            FROM outbox.action AS o
            WHERE o.schedule_id = q.schedule_id AND o.tenant = q.tenant AND o.relay = q.relay
                AND o.status IN ('due', 'running')
        )
)
