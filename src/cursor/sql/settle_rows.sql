WITH named AS (SELECT ARRAY(SELECT e.value FROM pg_catalog.jsonb_array_elements_text(k.value)
WITH ORDINALITY AS e (value, n) ORDER BY e.n) AS key FROM pg_catalog.jsonb_array_elements($2::text::jsonb) AS k (value)),
settled AS (DELETE FROM outbox.claim AS c USING named WHERE c.relay = $1 AND c.key = named.key AND c.state = 'unknown'
RETURNING c.key),
unmarked AS (DELETE FROM outbox.sent AS s USING settled WHERE $4 = 'lost' AND s.relay = $1 AND s.key = settled.key),
noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $3, 'request settle', $1,
pg_catalog.jsonb_build_object('outcome', $4::text, 'keys', pg_catalog.jsonb_agg(s.key)) FROM settled AS s HAVING pg_catalog.count(*) > 0)
SELECT pg_catalog.count(*) FROM settled
