-- Whether an operator's change has left a cursor at the instant $1: this one, or one that was renamed or resharded since. Replicas of an
-- older version note it by its older name, or without the position: then the change itself says it, where none came after it.
SELECT EXISTS (
    SELECT
    FROM outbox.operation AS o
    WHERE o.verb IN ('change applied', 'wish carried out')
        AND o.detail -> 'position' -> 'created_at' = pg_catalog.to_jsonb($1::timestamptz)
)
OR EXISTS (
    SELECT
    FROM outbox.control AS k
    JOIN outbox.cursor AS c ON c.name = k.cursor
    WHERE c.seek_applied >= k.seek_seq AND (k.seek_to ->> 'created_at')::timestamptz = $1::timestamptz
)
