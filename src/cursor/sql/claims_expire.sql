UPDATE outbox.claim SET state = 'unknown', updated_at = pg_catalog.clock_timestamp(),
    error = COALESCE(error, '{}') || pg_catalog.jsonb_build_object(
        'at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', 'interrupted',
        'message', 'replica ' || claimed_by || ' ended or was cut off while it had the row: sent or not',
        'hint', 'Ask the receiver for this key; under at_most_once it is not sent again.'
    )
WHERE relay = $1 AND state = 'sending' AND expires_at <= pg_catalog.clock_timestamp()
RETURNING key
