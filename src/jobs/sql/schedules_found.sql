UPDATE outbox.schedule AS s SET next_at = NULL, problem = NULL,
    last_at = CASE
        WHEN s.problem LIKE 'tenants_unknown:%' AND s.rule IS NOT NULL
            THEN GREATEST(s.last_at, pg_catalog.clock_timestamp())
        ELSE s.last_at
    END
WHERE s.schedule_id IN (
    SELECT o.schedule_id
    FROM outbox.schedule AS o
    WHERE o.relay = $1 AND (o.problem LIKE 'relay_unknown:%' OR $2::boolean AND o.problem LIKE 'tenants_unknown:%')
    FOR NO KEY UPDATE SKIP LOCKED
)
