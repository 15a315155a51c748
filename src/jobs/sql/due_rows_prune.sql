DELETE
FROM outbox.claim
WHERE relay = $1 AND NOT marked AND updated_at < pg_catalog.clock_timestamp() - interval '1 day'
    AND (
        state = 'claimed' AND expires_at < pg_catalog.clock_timestamp() - interval '1 day' OR state = 'waiting'
        AND not_before < pg_catalog.clock_timestamp() - interval '1 day'
    )
