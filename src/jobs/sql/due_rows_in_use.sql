-- Whether a mark or a claim of the relay $1 has one of the labels $3 in the key's column whose number stands beside it in $2; or, with $4,
-- whether a row of a lane is on its way.
SELECT EXISTS (
    SELECT FROM outbox.claim AS c
    JOIN ROWS FROM (pg_catalog.unnest($2::integer[]), pg_catalog.unnest($3::text[])) AS o (number, label) ON c.key[o.number] = o.label
    WHERE c.relay = $1::text
) OR EXISTS (
    SELECT FROM outbox.sent AS s
    JOIN ROWS FROM (pg_catalog.unnest($2::integer[]), pg_catalog.unnest($3::text[])) AS o (number, label) ON s.key[o.number] = o.label
    WHERE s.relay = $1::text
) OR $4::boolean AND EXISTS (
    SELECT FROM outbox.claim AS b
    WHERE b.relay = $1::text AND b.lane IS NOT NULL AND (b.state IN ('claimed', 'sending') OR b.state = 'waiting' AND b.marked)
)
