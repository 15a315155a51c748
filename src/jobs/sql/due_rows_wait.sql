UPDATE outbox.claim SET state = 'waiting', attempts = attempts + $4, lane = CASE WHEN marked THEN lane END,
    not_before = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $5::float8), expires_at = NULL,
    error = $6::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp()
-- Not one that another replica has recorded as unknown meanwhile: later rows of its lane may have been sent.
WHERE relay = $1 AND key = $2::text[] AND token = $3 AND state IN ('claimed', 'sending')
