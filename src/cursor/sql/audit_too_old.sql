-- Further comparisons are not made up for after a pause of all replicas; the first one is, for a day, and while the relay is halted.
WITH gone AS (
    DELETE FROM outbox.audit_slice AS s
    WHERE s.check_at <= pg_catalog.clock_timestamp()
        AND s.ended_at < pg_catalog.clock_timestamp() - CASE WHEN s.checks > 0 THEN interval '2 hours' ELSE interval '1 day' END
        AND NOT EXISTS (SELECT FROM outbox.cursor_status AS h WHERE h.cursor = s.cursor AND h.halted)
    RETURNING s.cursor, s.checks
)
SELECT cursor, pg_catalog.count(*) FROM gone WHERE checks = 0 GROUP BY cursor
