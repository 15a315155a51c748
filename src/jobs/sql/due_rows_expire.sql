UPDATE outbox.claim SET state = 'unknown', updated_at = pg_catalog.clock_timestamp(),
    error = COALESCE(error, '{}') || pg_catalog.jsonb_build_object(
        'at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', 'interrupted',
        'message', 'the claim of replica ' || claimed_by
            || ' ended without a record: the replica ended or was cut off, or PostgreSQL did not answer it; sent or not',
        'hint', 'Ask the receiver for this key; under at_most_once it is not sent again.'
    )
WHERE relay = $1 AND state = 'sending' AND expires_at <= pg_catalog.clock_timestamp()
RETURNING key
