SELECT pg_catalog.pg_backend_pid(), (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
    (EXTRACT(EPOCH FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint,
    pg_catalog.current_setting('server_version_num')::integer
