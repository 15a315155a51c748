UPDATE outbox.cursor AS c SET position_created_at = k.position_created_at, position_id = k.position_id, observed_at = k.observed_at,
    snapshot = k.snapshot, relations = k.relations, partitions = COALESCE(k.partitions, c.partitions), rule = k.rule,
    open_since = k.open_since, advanced_by = $3, advanced_at = n.now, updated_at = n.now, swept_column = k.swept_column,
    swept_at = CASE WHEN k.swept_column IS NOT NULL THEN n.now END
FROM outbox.turn_progress AS k CROSS JOIN (SELECT pg_catalog.clock_timestamp() AS now) AS n
WHERE c.ctid = $2::text::tid AND c.name = $1 AND k.cursor = c.name AND k.base = $4
RETURNING k.rows, k.written_by, k.position_created_at, k.position_id
