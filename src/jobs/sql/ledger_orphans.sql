-- From relay to relay along the indexes of what waits: what has ended, most of the table, is in none of them.
WITH RECURSIVE p AS (
(SELECT r.relay FROM outbox.request AS r WHERE r.status = 'pending' ORDER BY r.relay LIMIT 1)
UNION ALL SELECT (SELECT r.relay FROM outbox.request AS r WHERE r.status = 'pending' AND r.relay > p.relay
ORDER BY r.relay LIMIT 1) FROM p WHERE p.relay IS NOT NULL),
q AS (
(SELECT r.relay FROM outbox.request AS r WHERE r.status = 'processing' ORDER BY r.relay LIMIT 1)
UNION ALL SELECT (SELECT r.relay FROM outbox.request AS r WHERE r.status = 'processing' AND r.relay > q.relay
ORDER BY r.relay LIMIT 1) FROM q WHERE q.relay IS NOT NULL)
SELECT n.relay, (SELECT pg_catalog.count(*) FROM (
(SELECT FROM outbox.request AS r WHERE r.relay = n.relay AND r.status = 'pending' LIMIT $2)
UNION ALL (SELECT FROM outbox.request AS r WHERE r.relay = n.relay AND r.status = 'processing' LIMIT $2)) AS l)
FROM (SELECT p.relay FROM p UNION SELECT q.relay FROM q) AS n WHERE n.relay IS NOT NULL
AND n.relay <> ALL ($1::text[]) ORDER BY n.relay
