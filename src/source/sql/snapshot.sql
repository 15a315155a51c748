-- Taken with the rows, in their snapshot: the snapshot itself, and what the table is made of ($1: its oid, $2: its name).
-- The horizon was computed for one family of relations; a partition attached since then would not be covered by it.
-- A partition whose DETACH CONCURRENTLY is pending is still listed, but no plan reads it: when it returns, it is new. Its
-- ancestors count all the same, because writers that came in through them may still be under way.
WITH RECURSIVE
  up AS (
    SELECT i.inhparent AS oid FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = $1::oid
    UNION
    SELECT i.inhparent FROM pg_catalog.pg_inherits AS i JOIN up ON i.inhrelid = up.oid
  ),
  down AS (
    SELECT $1::oid AS oid
    UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN down ON i.inhparent = down.oid WHERE NOT i.inhdetachpending
  )
SELECT pg_catalog.pg_current_snapshot()::text,
       pg_catalog.to_regclass($2::text)::oid,
       ARRAY(SELECT oid FROM up),
       ARRAY(SELECT oid FROM down),
       -- What rows are ordered by: the columns $3, of which a change of precision or collation changes no type, nor a
       -- change of names.
       ARRAY(
         SELECT pg_catalog.concat_ws(' ', a.attname, a.attnum, a.atttypid, a.atttypmod, NULLIF(a.attcollation, 0)::pg_catalog.regcollation)
         FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = $1::oid AND a.attname = ANY ($3::text[]) AND NOT a.attisdropped
       )
