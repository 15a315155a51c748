-- With one snapshot: where the cursor stands, its open slice, and the ended ones that have rows of the range.
SELECT c.position_created_at, c.position_id, c.audit, pg_catalog.clock_timestamp(), s.reads, s.after_created_at, s.after_id,
    s.up_to_created_at, s.up_to_id, s.sums, s.ended_at
FROM outbox.cursor AS c
LEFT JOIN outbox.audit_slice AS s ON s.cursor = c.name AND s.up_to_created_at >= $2 AND s.after_created_at < $3
WHERE c.name = $1
ORDER BY s.after_created_at, s.up_to_created_at, s.id
