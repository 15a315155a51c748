UPDATE outbox.schedule AS s SET next_at = NULL, problem = NULL
WHERE s.schedule_id IN (
    SELECT o.schedule_id
    FROM outbox.schedule AS o
    WHERE o.relay = $1 AND o.problem LIKE 'relay_unknown:%'
    FOR NO KEY UPDATE SKIP LOCKED
)
