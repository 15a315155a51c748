-- Slices are deleted here alone, and those of a cursor in the order in which they ended: one stays as long as an earlier one does, which
-- another replica may be comparing, or keeps for longer. Further comparisons are not made up for after a pause of all replicas; the first
-- one is, for a day, and while the relay is halted. What is not compared any more stays as long as what was compared: $1 seconds from its
-- end. $2 seconds after its end it is too late for further comparisons.
WITH old AS (
    SELECT s.id, s.cursor, s.checks, s.ended_at + pg_catalog.make_interval(secs => $1) AS keep_until
    FROM outbox.audit_slice AS s
    WHERE s.check_at <= pg_catalog.statement_timestamp()
        AND s.ended_at < pg_catalog.statement_timestamp() - CASE WHEN s.checks > 0 THEN pg_catalog.make_interval(secs => $2) ELSE interval '1 day' END
        AND NOT EXISTS (SELECT FROM outbox.cursor_status AS h WHERE h.cursor = s.cursor AND h.halted)
    ORDER BY s.check_at, s.id LIMIT 1000 FOR UPDATE OF s SKIP LOCKED
), staying AS (
    -- Of each cursor, among the slices before the last of these: the first that is none of them, and until when the last such one stays. By
    -- the key, and once for a cursor: nearly all that is older is gone, and these are next to each other.
    SELECT l.cursor, f.id, n.check_at
    FROM (SELECT o.cursor, pg_catalog.max(o.id) AS last FROM old AS o GROUP BY o.cursor) AS l
    CROSS JOIN LATERAL (
        SELECT s.id FROM outbox.audit_slice AS s
        WHERE s.cursor = l.cursor AND s.id < l.last AND s.id <> ALL (ARRAY(SELECT o.id FROM old AS o))
        ORDER BY s.id LIMIT 1
    ) AS f
    CROSS JOIN LATERAL (
        SELECT s.check_at FROM outbox.audit_slice AS s
        WHERE s.cursor = l.cursor AND s.id >= f.id AND s.id < l.last AND s.id <> ALL (ARRAY(SELECT o.id FROM old AS o))
        ORDER BY s.id DESC LIMIT 1
    ) AS n
), due AS (
    SELECT o.id, CASE
        WHEN t.id < o.id THEN GREATEST(o.keep_until, t.check_at, pg_catalog.statement_timestamp() + interval '1 minute')
        ELSE o.keep_until
    END AS keep_until
    FROM old AS o LEFT JOIN staying AS t ON t.cursor = o.cursor
), gone AS (
    DELETE FROM outbox.audit_slice AS s USING due AS d WHERE s.id = d.id AND d.keep_until <= pg_catalog.statement_timestamp()
), kept AS (
    UPDATE outbox.audit_slice AS s SET checks = s.checks + 1, check_at = d.keep_until
    FROM due AS d WHERE s.id = d.id AND d.keep_until > pg_catalog.statement_timestamp()
)
SELECT o.cursor, pg_catalog.count(*) FROM old AS o WHERE o.checks = 0 GROUP BY o.cursor
