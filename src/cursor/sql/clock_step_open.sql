WITH RECURSIVE successor AS (
    -- Cursors that stand in the place of another since; the cursor of a shard is named relay#shard.
    SELECT r.id, c.place ->> 'name' AS old,
        r.cursor || pg_catalog.substr(c.place ->> 'name', pg_catalog.length(r.detail ->> 'from') + 1) AS new
    FROM outbox.operation AS r, pg_catalog.jsonb_array_elements(r.detail -> 'cursors') AS c (place)
    WHERE r.verb = 'cursor rename'
    UNION ALL
    SELECT r.id, o.name, n.name
    FROM outbox.operation AS r,
        pg_catalog.jsonb_array_elements_text(r.detail -> 'from') AS o (name),
        pg_catalog.jsonb_array_elements_text(r.detail -> 'to') AS n (name)
    WHERE r.verb = 'cursor reshard'
    UNION ALL
    SELECT r.id, c.place ->> 'name', NULL
    FROM outbox.operation AS r, pg_catalog.jsonb_array_elements(r.detail -> 'cursors') AS c (place)
    WHERE r.verb = 'cursor remove'
), answer AS (
    SELECT a.id, a.cursor,
        CASE
            -- Years that older versions wrote in a form that PostgreSQL does not read: no step of a clock ends there.
            WHEN a.detail -> 'to' ->> 'created_at' ~ '^[+]|us$' THEN 'infinity'
            WHEN a.detail -> 'to' ->> 'created_at' ~ '^(-|0000)' THEN '-infinity'
            ELSE COALESCE((a.detail -> 'to' ->> 'created_at')::timestamptz, '-infinity')
        END AS target
    FROM outbox.operation AS a
    WHERE a.verb = 'cursor seek'
), step AS (
    SELECT o.id, o.cursor, (o.detail ->> 'from')::timestamptz AS since, (o.detail ->> 'to')::timestamptz AS until
    FROM outbox.operation AS o
    WHERE o.verb = 'clock stepped back' AND o.cursor IS NOT NULL
    UNION
    SELECT n.id, n.new, s.since, s.until
    FROM step AS s
    JOIN successor AS n ON n.old = s.cursor AND n.id > s.id AND n.new IS NOT NULL
    WHERE NOT EXISTS (
        SELECT FROM answer AS a
        WHERE a.cursor = s.cursor AND a.id > s.id AND a.id < n.id AND a.target <= s.until
    )
), unanswered AS (
    -- One start for each end: any that a replica knows is a bound.
    SELECT s.cursor, pg_catalog.min(s.since) AS since, s.until
    FROM step AS s
    WHERE NOT EXISTS (
        SELECT FROM answer AS a WHERE a.cursor = s.cursor AND a.id > s.id AND a.target <= s.until
    ) AND NOT EXISTS (SELECT FROM successor AS n WHERE n.old = s.cursor AND n.id > s.id)
    GROUP BY s.cursor, s.until
)
SELECT u.cursor, CASE WHEN pg_catalog.bool_and(u.since IS NOT NULL) THEN pg_catalog.min(u.since) END,
    pg_catalog.max(u.until)
FROM unanswered AS u
GROUP BY u.cursor
