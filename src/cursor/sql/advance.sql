WITH moved AS (
    UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = $4,
        snapshot = COALESCE($5::text::pg_snapshot, snapshot), relations = $6::oid[], seek_applied = $7,
        identity = $8::text::jsonb, advanced_by = $9, partitions = COALESCE($10, partitions), rule = $12,
        open_since = $13, position_order = $15, position_columns = $17, audit = $16, advanced_at = n.now, updated_at = n.now,
        swept_column = CASE WHEN $5::text IS NULL THEN swept_column ELSE $14::smallint END,
        -- The snapshot belongs to this advance: a program that knows nothing of it leaves the two instants apart.
        swept_at = CASE
            WHEN $5::text IS NOT NULL THEN CASE WHEN $14::smallint IS NOT NULL THEN n.now END
            WHEN swept_at IS NOT DISTINCT FROM advanced_at
                AND (position_created_at, position_id) IS NOT DISTINCT FROM ($2, $3) THEN n.now
        END
    FROM (SELECT pg_catalog.clock_timestamp() AS now) AS n
    WHERE ctid = $11::text::tid AND name = $1
    RETURNING ctid::text AS place
)
SELECT COALESCE((SELECT place FROM moved), pg_catalog.current_setting('outbox.cursor_row_deleted'))
