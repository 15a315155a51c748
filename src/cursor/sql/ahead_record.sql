-- Only while the turn's transaction is the last that has locked the cursor's row. How far its prefix reaches is told of that version of the
-- row; that a row beyond it was acknowledged stays true until a seek.
WITH turn AS MATERIALIZED (
    SELECT c.name, c.seek_applied, c.created_at
    FROM outbox.cursor AS c
    WHERE c.ctid = $13::text::tid AND c.name = $1 AND c.xmax = $14::text::xid8::xid
), progress AS (
    INSERT INTO outbox.turn_progress AS k (cursor, base, position_created_at, position_id, rows, observed_at, snapshot, relations, partitions,
        rule, open_since, written_by, swept_column)
    SELECT t.name, $2, $3, $4, $5, $6, $7::text::pg_snapshot, $8, $9, $10, $11, $12, $15::smallint
    FROM turn AS t WHERE $5::bigint > 0
    ON CONFLICT (cursor) DO UPDATE SET base = excluded.base, position_created_at = excluded.position_created_at,
        position_id = excluded.position_id, rows = excluded.rows, observed_at = excluded.observed_at, snapshot = excluded.snapshot,
        relations = excluded.relations, partitions = excluded.partitions, rule = excluded.rule, open_since = excluded.open_since,
        written_at = pg_catalog.clock_timestamp(), written_by = excluded.written_by,
        swept_column = excluded.swept_column
), beyond AS (
    INSERT INTO outbox.ahead AS a (cursor, created_at, message_id, seek, since, written_by)
    SELECT t.name, r.created_at, r.id, t.seek_applied, t.created_at, $12
    FROM turn AS t CROSS JOIN ROWS FROM (pg_catalog.unnest($16::timestamptz[]), pg_catalog.unnest($17::text[])) AS r (created_at, id)
    ORDER BY r.created_at, r.id
    ON CONFLICT (cursor, created_at, message_id) DO UPDATE SET seek = excluded.seek, since = excluded.since,
        written_at = pg_catalog.clock_timestamp(), written_by = excluded.written_by
)
SELECT EXISTS (SELECT FROM turn)
