SELECT relay,
    CASE WHEN status = 'processing' AND expires_at < pg_catalog.clock_timestamp() THEN 'unknown' ELSE status END
FROM outbox.request
WHERE request_id = $1::text::uuid
