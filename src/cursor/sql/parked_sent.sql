WITH gone AS (DELETE FROM outbox.parked WHERE seq = ANY ($2::bigint[]) RETURNING key)
UPDATE outbox.parked_key AS k SET rows = k.rows - g.rows
FROM (SELECT key, pg_catalog.count(*) AS rows FROM gone GROUP BY key) AS g
WHERE k.cursor = $1 AND k.key = g.key
