SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE t.tgrelid = $1::oid AND n.nspname = 'outbox' AND p.proname = 'notify' AND t.tgenabled IN ('O', 'A')
        AND t.tgtype & 71 = 4 AND t.tgqual IS NULL
)
