-- What is visible now and lies at or below the new position is passed, as the operator wants it; what comes there later is late, but not
-- while the position is still to come.
UPDATE outbox.cursor AS c SET position_created_at = $2, position_id = $3, observed_at = COALESCE($4, c.observed_at),
    seek_applied = $5, identity = COALESCE($6::text::jsonb, c.identity), relations = COALESCE($7::oid[], c.relations),
    partitions = COALESCE($8::integer, c.partitions), open_since = NULL, updated_at = pg_catalog.clock_timestamp(),
    position_order = CASE WHEN k.is_same THEN c.position_order END, position_columns = CASE WHEN k.is_same THEN c.position_columns END,
    audit = CASE WHEN NOT $12::boolean THEN c.audit END,
    snapshot = CASE
        WHEN $9::smallint IS NULL OR k.keeps THEN c.snapshot
        ELSE COALESCE($10::text::pg_snapshot, pg_catalog.pg_current_snapshot())
    END,
    swept_column = CASE
        WHEN $2::timestamptz > pg_catalog.clock_timestamp() THEN NULL
        WHEN k.keeps THEN c.swept_column
        ELSE $9::smallint
    END,
    swept_at = CASE WHEN k.keeps THEN c.swept_at ELSE c.advanced_at END
FROM (
    -- Another server's transactions have other numbers.
    SELECT o.name, $11::boolean AND ($6::text IS NULL OR COALESCE(o.identity ->> 'system' = $6::text::jsonb ->> 'system', false)) AS keeps,
        -- Of another table, nothing is known of its order. Of the same one, a change that no turn has seen yet still halts the relay. What is
        -- before every row has no order, and a turn that is killed may leave the first position without one.
        $2::timestamptz IS NOT NULL AND (
            $6::text IS NULL OR COALESCE(o.relations[1] = ($7::oid[])[1] AND o.identity ->> 'system' = $6::text::jsonb ->> 'system', false)
        ) AS is_same
    FROM outbox.cursor AS o WHERE o.name = $1
) AS k
WHERE c.name = k.name
