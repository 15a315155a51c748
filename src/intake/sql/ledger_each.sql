SELECT e.id::text, COALESCE(r.status, 'pending'), COALESCE(r.status = 'completed', false), r.request_id IS NOT NULL
FROM (SELECT outbox.enqueue($1, $2, COALESCE($3::text::jsonb, '{}'), $4::text::uuid, $5) AS id OFFSET 0) AS e
LEFT JOIN outbox.request AS r ON r.request_id = e.id
