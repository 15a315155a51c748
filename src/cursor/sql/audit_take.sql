UPDATE outbox.audit_slice AS s SET check_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $2)
WHERE s.id = (
    SELECT d.id FROM outbox.audit_slice AS d
    WHERE d.check_at <= pg_catalog.statement_timestamp() AND d.cursor = ANY ($1)
        -- Older ones that have been compared are not compared again: they have been kept long enough, or too long ago.
        AND (d.checks = 0 OR d.ended_at > pg_catalog.statement_timestamp() - pg_catalog.make_interval(secs => $3))
        -- An operator is to decide first, perhaps of rows that a partition brought which was attached.
        AND NOT EXISTS (SELECT FROM outbox.cursor_status AS h WHERE h.cursor = d.cursor AND h.halted)
    -- The first comparison of a quiet cursor's slice does not wait for further ones of a busy cursor's.
    ORDER BY LEAST(d.checks, 1), d.check_at, d.id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING s.id, s.cursor, s.reads, s.after_created_at, s.after_id, s.up_to_created_at, s.up_to_id, s.sums, s.checks,
    EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - s.ended_at)::float8
