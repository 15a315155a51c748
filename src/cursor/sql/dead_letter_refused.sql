UPDATE outbox.dead_letter SET state = 'dead', attempts = attempts + 1,
    error = $2::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp())
        || CASE WHEN error ? 'late' THEN pg_catalog.jsonb_build_object('late', error -> 'late') ELSE '{}' END,
    dead_lettered_at = pg_catalog.clock_timestamp(), dead_lettered_by = $3, requested_at = NULL, requested_by = NULL
WHERE id = $1
