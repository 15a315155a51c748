SELECT t.name
FROM pg_catalog.unnest($3::text[]) WITH ORDINALITY AS t(name, n)
WHERE NOT EXISTS (SELECT FROM outbox.action AS a WHERE a.schedule_id = $1 AND a.tenant = t.name AND a.planned_at = $2)
ORDER BY t.n LIMIT $4
