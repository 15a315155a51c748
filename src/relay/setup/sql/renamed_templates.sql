SELECT t.relay,
    CASE pg_catalog.count(*) WHEN 1 THEN 'the template ' ELSE 'the templates ' END
        || pg_catalog.string_agg(t.name, ', ' ORDER BY t.name)
FROM outbox.template AS t
WHERE t.relay = ANY ($1) AND t.name = ANY ($2)
GROUP BY t.relay
