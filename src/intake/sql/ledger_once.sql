SELECT m.request_id::text, m.status, m.already_sent,
    m.request_id <> c.id OR EXISTS (SELECT FROM outbox.request AS r WHERE r.request_id = c.id)
FROM (SELECT COALESCE($5::text::uuid, outbox.uuid7()) AS id OFFSET 0) AS c,
    LATERAL outbox.enqueue_once(
        $1, $2, $3, COALESCE($4::text::jsonb, '{}'), c.id, $6, $7 * interval '1 second', $8
    ) AS m
