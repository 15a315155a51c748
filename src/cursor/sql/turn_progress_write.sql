-- Only while the turn's transaction is the last that has locked the cursor's row: another turn may have the same version of it, and what
-- it records must not be overwritten. One that is lost in a crash of the server costs repetitions only, as an advance does: its commit does
-- not wait for the disk.
WITH unflushed AS MATERIALIZED (SELECT pg_catalog.set_config('synchronous_commit', 'off', true) AS is_off)
INSERT INTO outbox.turn_progress AS k (cursor, base, position_created_at, position_id, rows, observed_at, snapshot, relations, partitions,
    rule, open_since, written_by, swept_column)
SELECT c.name, $2, $3, $4, $5, $6, $7::text::pg_snapshot, $8, $9, $10, $11, $12, $15::smallint
FROM unflushed CROSS JOIN outbox.cursor AS c
WHERE is_off IS NOT NULL AND c.ctid = $13::text::tid AND c.name = $1 AND c.xmax = $14::text::xid8::xid
ON CONFLICT (cursor) DO UPDATE SET base = excluded.base, position_created_at = excluded.position_created_at,
    position_id = excluded.position_id, rows = excluded.rows, observed_at = excluded.observed_at, snapshot = excluded.snapshot,
    relations = excluded.relations, partitions = excluded.partitions, rule = excluded.rule, open_since = excluded.open_since,
    written_at = pg_catalog.clock_timestamp(), written_by = excluded.written_by,
    swept_column = excluded.swept_column
