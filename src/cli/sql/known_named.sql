SELECT EXISTS (SELECT FROM outbox.cursor WHERE name = $1 OR relay = $1)
    OR EXISTS (SELECT FROM outbox.claim WHERE relay = $1) OR EXISTS (SELECT FROM outbox.request WHERE relay = $1)
    OR EXISTS (SELECT FROM outbox.dead_letter WHERE cursor = $1)
    OR EXISTS (SELECT FROM outbox.schedule WHERE relay = $1) OR EXISTS (SELECT FROM outbox.action WHERE relay = $1)
