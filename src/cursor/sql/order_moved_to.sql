-- Whether an operator's change has left a cursor at the instant $1: this one, or one that was renamed or resharded since. Replicas of an
-- older version note it by its older name.
SELECT EXISTS (
    SELECT
    FROM outbox.operation AS o
    WHERE o.verb IN ('change applied', 'wish carried out')
        AND o.detail -> 'position' -> 'created_at' = pg_catalog.to_jsonb($1::timestamptz)
)
