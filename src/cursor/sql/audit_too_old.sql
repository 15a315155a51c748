-- Further comparisons are not made up for after a pause of all replicas; the first one is, for a day, and while the relay is halted. What is
-- not compared any more is kept as long as what was compared: $1 seconds from its end.
WITH old AS (
    SELECT s.id, s.cursor, s.checks, s.ended_at + pg_catalog.make_interval(secs => $1) AS keep_until
    FROM outbox.audit_slice AS s
    WHERE s.check_at <= pg_catalog.statement_timestamp()
        AND s.ended_at < pg_catalog.statement_timestamp() - CASE WHEN s.checks > 0 THEN interval '2 hours' ELSE interval '1 day' END
        AND NOT EXISTS (SELECT FROM outbox.cursor_status AS h WHERE h.cursor = s.cursor AND h.halted)
    ORDER BY s.check_at, s.id LIMIT 1000 FOR UPDATE OF s SKIP LOCKED
), gone AS (
    DELETE FROM outbox.audit_slice AS s USING old AS o WHERE s.id = o.id AND o.keep_until <= pg_catalog.statement_timestamp()
), kept AS (
    UPDATE outbox.audit_slice AS s SET checks = s.checks + 1, check_at = o.keep_until
    FROM old AS o WHERE s.id = o.id AND o.keep_until > pg_catalog.statement_timestamp()
)
SELECT o.cursor, pg_catalog.count(*) FROM old AS o WHERE o.checks = 0 GROUP BY o.cursor
