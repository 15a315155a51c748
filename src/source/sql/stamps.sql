-- How created_at ($2) comes about in each relation of the family $1 that rows can be written to: its default, whether the
-- stamping trigger has the last word on every way to change the column, and who could send a value of their own.
SELECT c.oid,
       c.oid::regclass::text,
       CASE WHEN c.relispartition
            THEN COALESCE((SELECT i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid), 0)
            ELSE 0 END::oid,
       last.tgname::text,
       -- A trigger bound to UPDATE OF the column sleeps when another one changes the column in an UPDATE of others: then
       -- the stamping trigger counts only without a list of columns. A generated column is computed after all triggers.
       COALESCE(last.tgfoid = ANY (ours.stamping)
                AND last.tgtype & 20 = 20 AND last.tgqual IS NULL
                AND a.attname = 'created_at' AND a.attgenerated = ''
                AND (pg_catalog.cardinality(last.tgattr::int2[]) = 0
                     OR a.attnum = ANY (last.tgattr::int2[]) AND NOT EXISTS (
                         SELECT FROM pg_catalog.pg_trigger AS t
                         WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 16 = 16 AND t.tgenabled <> 'D'
                           AND t.oid <> last.oid AND t.tgfoid <> ALL (ours.refusing))), false),
       -- Any other state is skipped under some session_replication_role.
       COALESCE(last.tgenabled = 'A', false),
       ARRAY(SELECT t.tgname::text FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid ORDER BY 1),
       EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
               WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 16 = 16 AND t.tgenabled <> 'D'
                 AND t.tgfoid <> ALL (ours.refusing)),
       COALESCE(last.tgenabled = 'D', false),
       -- Without the relation's oid, which only an expression over columns needs, PostgreSQL looks up no column's name.
       CASE a.attgenerated WHEN '' THEN pg_catalog.pg_get_expr(d.adbin, 0) ELSE pg_catalog.pg_get_expr(d.adbin, d.adrelid) END,
       a.attgenerated <> '',
       pg_catalog.pg_get_userbyid(c.relowner)::text,
       -- No session can have a predefined role without members; with one, even NOINHERIT members can SET ROLE to it.
       ARRAY(
           SELECT r.rolname::text FROM pg_catalog.pg_roles AS r
           WHERE NOT r.rolsuper AND r.oid <> c.relowner
             AND (r.rolname <> 'pg_write_all_data'
                  OR EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m
                             JOIN pg_catalog.pg_roles AS member ON member.oid = m.member
                             WHERE m.roleid = r.oid AND NOT member.rolsuper AND member.oid <> c.relowner))
             AND (pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT')
                  OR pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE'))
           ORDER BY 1)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::text AND NOT a.attisdropped
CROSS JOIN (
    SELECT ARRAY(SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
                 WHERE n.nspname = 'outbox' AND p.pronargs = 0
                   AND p.proname IN ('stamp_created_at', 'stamp_created_at_by_day')) AS stamping,
           -- It changes nothing, and may run last.
           ARRAY(SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
                 WHERE n.nspname = 'outbox' AND p.pronargs = 0 AND p.proname = 'refuse_key_update') AS refusing
) AS ours
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
-- Row triggers run by name; this is the last before a row is stored. Those that a partition has from its parent count
-- as internal up to PostgreSQL 14, hence no look at tgisinternal. A stamping trigger that is disabled counts where no other
-- one is enabled: it is to be enabled, and no second one made.
LEFT JOIN LATERAL (
    SELECT t.* FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0 AND t.tgfoid <> ALL (ours.refusing)
      AND (t.tgenabled <> 'D' OR t.tgfoid = ANY (ours.stamping) AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_trigger AS o
          WHERE o.tgrelid = c.oid AND o.tgfoid = ANY (ours.stamping) AND o.tgenabled <> 'D'))
    ORDER BY t.tgname DESC LIMIT 1) AS last ON true
WHERE c.oid = ANY ((SELECT $1::oid[])::oid[])
ORDER BY c.oid
