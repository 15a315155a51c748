UPDATE outbox.cursor SET position_created_at = $2, position_id = $3, observed_at = $4,
    snapshot = COALESCE($5::text::pg_snapshot, snapshot), relations = $6::oid[], seek_applied = $7,
    identity = $8::text::jsonb, advanced_by = $9, partitions = COALESCE($10, partitions), rule = $14, open_since = $15,
    advanced_at = pg_catalog.clock_timestamp(), updated_at = pg_catalog.clock_timestamp(),
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
WHERE name = $1
RETURNING token ->> 'xid'
