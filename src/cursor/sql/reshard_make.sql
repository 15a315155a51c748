INSERT INTO outbox.cursor (
    name, relay, identity, position_created_at, observed_at, relations, partitions, rule, open_since, snapshot, swept_column, seek_applied,
    position_order, position_columns
)
SELECT n, $2, $3::text::jsonb, $4::timestamptz, $5::timestamptz, $6::oid[], $7::integer, $8, $9, $10::text::pg_snapshot, $11::smallint,
    COALESCE((SELECT k.seek_seq FROM outbox.control AS k WHERE k.cursor = n), 0), $12::text, $13::smallint[]
FROM pg_catalog.unnest($1::text[]) AS n
