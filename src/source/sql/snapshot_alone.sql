-- The same of a table ($1: its oid, $2: its name) that had neither ancestors nor descendants when the catalog was read: where it
-- has no parent and no child there is no relative further away, and where it has one it is not what it was.
SELECT pg_catalog.pg_current_snapshot()::text,
       pg_catalog.to_regclass($2::text)::oid,
       ARRAY(SELECT i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = $1::oid),
       ARRAY(
         SELECT $1::oid
         UNION ALL
         SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = $1::oid AND NOT i.inhdetachpending
       ),
       -- What rows are ordered by: the columns $3, of which a change of precision or collation changes no type, nor a
       -- change of names.
       ARRAY(
         SELECT pg_catalog.concat_ws(' ', a.attname, a.attnum, a.atttypid, a.atttypmod, NULLIF(a.attcollation, 0)::pg_catalog.regcollation)
         FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = $1::oid AND a.attname = ANY ($3::text[]) AND NOT a.attisdropped
       )
