WITH moved AS (
    UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, token = NULL,
        swept_at = CASE WHEN swept_at IS NOT DISTINCT FROM advanced_at THEN n.now END,
        advanced_at = n.now, updated_at = n.now
    FROM (SELECT pg_catalog.clock_timestamp() AS now) AS n
    WHERE name = $1 AND token ->> 'token' = $4
    RETURNING true AS moved
)
SELECT COALESCE((SELECT moved FROM moved), pg_catalog.current_setting('outbox.cursor_row_deleted')::boolean)
