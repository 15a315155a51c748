SELECT p.id, m.status
FROM ROWS FROM (
    pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::timestamptz[]), pg_catalog.unnest($3::boolean[])
) AS p(id, planned, queues),
    LATERAL outbox.make_action(
        (SELECT s FROM outbox.schedule AS s WHERE s.schedule_id = p.id), p.planned, p.queues, false, $4::text[]
    ) AS m
