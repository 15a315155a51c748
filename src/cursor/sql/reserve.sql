UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = $4,
    snapshot = COALESCE($5::text::pg_snapshot, snapshot), relations = $6::oid[], seek_applied = $7,
    identity = $8::text::jsonb, advanced_by = $9, partitions = COALESCE($10, partitions), rule = $14, open_since = $15,
    position_order = $17, position_columns = $18, audit = $19,
    advanced_at = n.now, updated_at = n.now,
    swept_column = CASE WHEN $5::text IS NULL THEN swept_column ELSE $16::smallint END,
    swept_at = CASE
        WHEN $5::text IS NOT NULL THEN CASE WHEN $16::smallint IS NOT NULL THEN n.now END
        WHEN swept_at IS NOT DISTINCT FROM advanced_at
            AND (position_created_at, position_id) IS NOT DISTINCT FROM ($2, $3) THEN n.now
    END,
    token = pg_catalog.jsonb_build_object(
        'token', $11::text, 'by', $9::text, 'xid', pg_catalog.pg_current_xact_id()::text,
        'rows', (
            SELECT pg_catalog.jsonb_agg(
                pg_catalog.jsonb_build_object('id', u.id, 'created_at', u.created_at) ORDER BY u.n
            )
            FROM ROWS FROM (
                pg_catalog.unnest($12::text[]), pg_catalog.unnest($13::timestamptz[])
            ) WITH ORDINALITY AS u(id, created_at, n)
        )
    )
FROM (SELECT pg_catalog.clock_timestamp() AS now) AS n
WHERE name = $1
RETURNING token ->> 'xid'
