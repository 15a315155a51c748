SELECT m.tenant
FROM outbox.make_action(
    (SELECT s FROM outbox.schedule AS s WHERE s.schedule_id = $1), $2::timestamptz, true, true, $3::text[]
) AS m
