WITH moved AS (
    UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, token = NULL,
        advanced_at = pg_catalog.clock_timestamp(), updated_at = pg_catalog.clock_timestamp()
    WHERE name = $1 AND token ->> 'token' = $4
    RETURNING true AS moved
)
SELECT COALESCE((SELECT moved FROM moved), pg_catalog.current_setting('outbox.cursor_row_deleted')::boolean)
