SELECT s.schedule_id, s.name, s.tenant, s.relay, s.rule, s.time_zone, s.starts_at, s.ends_at, s.changed_at,
s.enabled, s.next_at, s.last_at, s.problem, l.planned_at, l.outcome::text,
((pg_catalog.to_jsonb(s) - 'timeout') || pg_catalog.jsonb_build_object('timeout_seconds', EXTRACT(EPOCH FROM s.timeout)))::text FROM (
SELECT o.* FROM outbox.schedule AS o WHERE ($1::text IS NULL OR o.relay = $1) AND ($2::text IS NULL OR o.tenant = $2)
AND (NOT $3::boolean OR o.problem IS NOT NULL) AND ($4::bigint IS NULL OR o.schedule_id = $4)
AND ($5::text IS NULL OR o.name = $5 OR o.tenant || '/' || o.name = $5) ORDER BY o.relay, o.tenant, o.name LIMIT $6) AS s
LEFT JOIN LATERAL (WITH RECURSIVE t AS (
(SELECT a.tenant FROM outbox.action AS a WHERE a.schedule_id = s.schedule_id ORDER BY a.tenant LIMIT 1)
UNION ALL SELECT (SELECT a.tenant FROM outbox.action AS a WHERE a.schedule_id = s.schedule_id AND a.tenant > t.tenant
ORDER BY a.tenant LIMIT 1) FROM t WHERE t.tenant IS NOT NULL)
SELECT n.planned_at, pg_catalog.jsonb_object_agg(n.status, n.actions) AS outcome FROM (
SELECT a.planned_at, a.status, pg_catalog.count(*) AS actions FROM t CROSS JOIN LATERAL (SELECT o.planned_at, o.status
FROM outbox.action AS o WHERE o.schedule_id = s.schedule_id AND o.tenant = t.tenant ORDER BY o.planned_at DESC LIMIT 1) AS a
GROUP BY a.planned_at, a.status) AS n GROUP BY n.planned_at ORDER BY n.planned_at DESC LIMIT 1) AS l ON true
ORDER BY s.relay, s.tenant, s.name
