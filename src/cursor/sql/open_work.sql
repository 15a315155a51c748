-- Each part has an index of its own, and ends at its limit. There is no index of the queued actions by relay: they are counted behind
-- a due or running one of their schedule, where all are but for the moments until one is released that was left alone.
SELECT n.name,
(SELECT pg_catalog.count(*) FROM (
(SELECT FROM outbox.schedule AS s WHERE s.relay = n.name AND s.enabled AND s.next_at < 'infinity' LIMIT $2)
UNION ALL (SELECT FROM outbox.schedule AS s WHERE s.relay = n.name AND s.enabled AND s.next_at IS NULL LIMIT $2)) AS s),
(WITH o AS MATERIALIZED (
(SELECT a.schedule_id, a.tenant FROM outbox.action AS a WHERE a.relay = n.name AND a.status = 'due' LIMIT $2)
UNION ALL (SELECT a.schedule_id, a.tenant FROM outbox.action AS a WHERE a.relay = n.name AND a.status = 'running' LIMIT $2))
SELECT (SELECT pg_catalog.count(*) FROM o) + (SELECT pg_catalog.count(*) FROM (
SELECT FROM (SELECT DISTINCT o.schedule_id, o.tenant FROM o) AS d CROSS JOIN LATERAL (
SELECT FROM outbox.action AS a WHERE a.schedule_id = d.schedule_id AND a.tenant = d.tenant AND a.status = 'queued'
AND a.relay = n.name LIMIT $2) AS a
LIMIT $2) AS q)),
(SELECT pg_catalog.count(*) FROM (
(SELECT FROM outbox.request AS r WHERE r.relay = n.name AND r.status = 'pending' LIMIT $2)
UNION ALL (SELECT FROM outbox.request AS r WHERE r.relay = n.name AND r.status = 'processing' LIMIT $2)) AS r)
FROM (SELECT DISTINCT pg_catalog.unnest($1::text[])) AS n(name)
