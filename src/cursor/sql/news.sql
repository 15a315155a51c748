SELECT pg_catalog.concat_ws(
    ' ',
    (
        SELECT pg_catalog.concat_ws(
            ' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtext(k.cursor || ' ' || k.xmin::text))
        )
        FROM outbox.control AS k
    ),
    (
        SELECT pg_catalog.concat_ws(
            ' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtext(s.cursor || ' ' || s.xmin::text))
        )
        FROM outbox.cursor_status AS s
    ),
    (
        SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(d.id))
        FROM outbox.dead_letter AS d
        WHERE d.state = 'redriving'
    ),
    (
        SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(p.letter))
        FROM outbox.parked_key AS p
        WHERE p.released
    )
)
