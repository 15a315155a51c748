INSERT INTO outbox.control AS k (cursor, paused, paused_at, paused_by, updated_at)
VALUES ($1, true, pg_catalog.clock_timestamp(), $2, pg_catalog.clock_timestamp())
ON CONFLICT (cursor) DO UPDATE SET paused = true, paused_at = excluded.paused_at, paused_by = excluded.paused_by,
    updated_at = excluded.updated_at
WHERE NOT k.paused
