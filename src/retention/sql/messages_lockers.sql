SELECT 'locks of '
    || outbox.message_lockers(
        ARRAY['outbox.message'::pg_catalog.regclass,
        ('outbox.' || pg_catalog.quote_ident($1::text))::pg_catalog.regclass]::oid[]
    )
