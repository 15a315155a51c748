-- The last comparison is an hour after the end; a replica that was away for longer says nothing of what was long before.
WITH gone AS (
    DELETE FROM outbox.audit_slice
    WHERE cursor = ANY ($1) AND check_at <= pg_catalog.clock_timestamp()
        AND ended_at < pg_catalog.clock_timestamp() - interval '2 hours'
    RETURNING cursor
)
SELECT cursor, pg_catalog.count(*) FROM gone GROUP BY cursor
