UPDATE outbox.cursor SET swept_at = CASE WHEN swept_at IS NOT DISTINCT FROM advanced_at THEN n.now END,
    advanced_by = $2, advanced_at = n.now, updated_at = n.now
FROM (SELECT pg_catalog.clock_timestamp() AS now) AS n
WHERE name = $1
