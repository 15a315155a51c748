SELECT pg_catalog.json_strip_nulls(
    pg_catalog.json_build_object(
        'table', $1::text, 'sink', $2::text, 'target', $3::text,
        'system', (SELECT system_identifier::text FROM pg_catalog.pg_control_system()), 'shards', $4::text,
        'shard_key', $5::text
    )
)::text
