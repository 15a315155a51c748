UPDATE outbox.cursor AS c SET seek_applied = o.seek_seq
FROM outbox.control AS o
WHERE c.name = $1 AND o.cursor = c.name
