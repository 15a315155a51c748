SELECT EXISTS (SELECT FROM outbox.claim WHERE relay = $1 AND token = $2 AND error ->> 'code' = $3)
    OR EXISTS (SELECT FROM outbox.cursor WHERE name = $1 AND token ->> 'token' = $2)
