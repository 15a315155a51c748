SELECT $1::oid::regclass::text, pg_catalog.has_table_privilege($1::oid, 'SELECT'),
    pg_catalog.pg_get_partition_constraintdef($1::oid)
