SELECT cursor, pg_catalog.count(*) FILTER (WHERE resolved_at < since),
    pg_catalog.count(*) FILTER (WHERE state IN ('dead', 'redriving') AND dead_lettered_at < since)
FROM outbox.dead_letter,
    (SELECT pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8) AS since) AS s
GROUP BY cursor
ORDER BY cursor
