-- Parked keys keep their cursor from being removed (trigger keep_parked_keys), and the schema's function does not count them.
SELECT k.what, k.of_cursor, k.rows, k.open
FROM (
    SELECT 1, 'parked keys', p.cursor, pg_catalog.count(*), pg_catalog.count(*)
    FROM outbox.parked_key AS p
    WHERE p.cursor IN (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = $1)
    GROUP BY p.cursor
    UNION ALL
    SELECT 2, 'parked rows', r.cursor, pg_catalog.count(*), 0
    FROM outbox.parked AS r
    WHERE r.cursor IN (SELECT c.name FROM outbox.cursor AS c WHERE c.relay = $1)
    GROUP BY r.cursor
) AS k (n, what, of_cursor, rows, open)
ORDER BY k.n, k.of_cursor
