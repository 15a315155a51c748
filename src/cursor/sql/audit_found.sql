-- Partitions that the cursor has not known yet are its turn's to judge, and what it is halted for is an operator's.
UPDATE outbox.audit_slice AS s SET sums = $3, row_count = $4
WHERE s.id = $1 AND s.sums = $2
    AND EXISTS (SELECT FROM outbox.cursor AS c WHERE c.name = s.cursor AND c.relations = $5::oid[])
    AND NOT EXISTS (SELECT FROM outbox.cursor_status AS h WHERE h.cursor = s.cursor AND h.halted)
