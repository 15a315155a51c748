SELECT p.pid FROM pg_catalog.pg_stat_progress_create_index AS p WHERE p.index_relid = $1::text::regclass LIMIT 1
