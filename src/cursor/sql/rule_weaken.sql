UPDATE outbox.cursor SET rule = $2, position_order = $4, position_columns = $5, open_since = NULL,
    position_created_at = COALESCE($3::timestamptz, position_created_at),
    position_id = CASE WHEN $3::timestamptz IS NULL THEN position_id END, audit = NULL,
    updated_at = pg_catalog.clock_timestamp()
WHERE name = $1
