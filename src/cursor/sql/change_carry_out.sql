-- What is visible now and lies at or below the new position is passed, as the operator wants it; what comes there later is late, but not
-- while the position is still to come.
UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = COALESCE($4, observed_at),
    seek_applied = $5, identity = COALESCE($6::text::jsonb, identity), relations = COALESCE($7::oid[], relations),
    partitions = COALESCE($8::integer, partitions), open_since = NULL, updated_at = pg_catalog.clock_timestamp(),
    snapshot = CASE
        WHEN $9::smallint IS NULL OR $11::boolean THEN snapshot
        ELSE COALESCE($10::text::pg_snapshot, pg_catalog.pg_current_snapshot())
    END,
    swept_column = CASE
        WHEN $2::timestamptz > pg_catalog.clock_timestamp() THEN NULL
        WHEN $11::boolean THEN swept_column
        ELSE $9::smallint
    END,
    swept_at = CASE WHEN $11::boolean THEN swept_at ELSE advanced_at END
WHERE name = $1
