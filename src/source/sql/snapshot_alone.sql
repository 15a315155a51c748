-- The same of a table ($1: its oid, $2: its name) that had neither ancestors nor descendants when the catalog was read: where it
-- has no parent and no child there is no relative further away, and where it has one it is not what it was.
SELECT pg_catalog.pg_current_snapshot()::text,
       pg_catalog.to_regclass($2::text)::oid,
       ARRAY(SELECT i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = $1::oid),
       ARRAY(
         SELECT $1::oid
         UNION ALL
         SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = $1::oid AND NOT i.inhdetachpending
       )
