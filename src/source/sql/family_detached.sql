SELECT name::text
FROM outbox.message_partition
WHERE state <> 'attached' AND upper > COALESCE($1::timestamptz, '-infinity')
ORDER BY upper LIMIT 1
