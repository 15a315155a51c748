UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = COALESCE($4, observed_at),
    seek_applied = $5, identity = COALESCE($6::text::jsonb, identity), relations = COALESCE($7::oid[], relations),
    partitions = COALESCE($8::integer, partitions), open_since = NULL, updated_at = pg_catalog.clock_timestamp()
WHERE name = $1
