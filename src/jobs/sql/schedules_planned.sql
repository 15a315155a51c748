UPDATE outbox.schedule AS s SET next_at = p.next_at, last_at = p.last_at, problem = p.problem
FROM ROWS FROM (
    pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::timestamptz[]), pg_catalog.unnest($3::timestamptz[]),
    pg_catalog.unnest($4::text[])
) AS p(id, next_at, last_at, problem)
WHERE s.schedule_id = p.id
