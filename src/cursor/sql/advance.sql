WITH moved AS (
    UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = $4,
        snapshot = COALESCE($5::text::pg_snapshot, snapshot), relations = $6::oid[], seek_applied = $7,
        identity = $8::text::jsonb, advanced_by = $9, partitions = COALESCE($10, partitions), rule = $12,
        open_since = $13, advanced_at = pg_catalog.clock_timestamp(), updated_at = pg_catalog.clock_timestamp()
    WHERE ctid = $11::text::tid AND name = $1
    RETURNING ctid::text AS place
)
SELECT COALESCE((SELECT place FROM moved), pg_catalog.current_setting('outbox.cursor_row_deleted'))
