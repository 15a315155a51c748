SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('outbox-relay circuit ' || $1::text, 0))
    AND NOT EXISTS (
        SELECT
        FROM outbox.cursor_status
        WHERE cursor = $2 AND updated_at > $3 AND updated_at <= pg_catalog.clock_timestamp()
    )
