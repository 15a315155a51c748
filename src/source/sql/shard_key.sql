-- Who may update the shard key ($2) in each relation of the family $1 that has it, and whether the refusing trigger has the
-- last word on every way to change it. The stamping triggers change created_at alone, and may run after it.
SELECT c.oid,
       c.oid::regclass::text,
       CASE WHEN c.relispartition
            THEN COALESCE((SELECT i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid), 0)
            ELSE 0 END::oid,
       last.tgname::text,
       COALESCE(last.tgfoid = ANY (ours.refusing)
                AND last.tgqual IS NULL AND last.tgnargs = 1
                AND last.tgargs = pg_catalog.convert_to(a.attname::text, pg_catalog.getdatabaseencoding()) || '\x00'::bytea
                AND (pg_catalog.cardinality(last.tgattr::int2[]) = 0
                     OR a.attnum = ANY (last.tgattr::int2[]) AND NOT EXISTS (
                         SELECT FROM pg_catalog.pg_trigger AS t
                         WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 16 = 16 AND t.tgenabled <> 'D'
                           AND t.oid <> last.oid AND t.tgfoid <> ALL (ours.stamping))), false),
       COALESCE(last.tgenabled = 'A', false),
       ARRAY(SELECT t.tgname::text FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid ORDER BY 1),
       EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
               WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 16 = 16 AND t.tgenabled <> 'D'
                 AND t.tgfoid <> ALL (ours.stamping)),
       COALESCE(last.tgenabled = 'D', false),
       a.attgenerated <> '',
       pg_catalog.pg_get_userbyid(c.relowner)::text,
       -- A predefined role without members lets no one in.
       ARRAY(
           SELECT r.rolname::text FROM pg_catalog.pg_roles AS r
           WHERE NOT r.rolsuper AND r.oid <> c.relowner
             AND (r.rolname <> 'pg_write_all_data'
                  OR EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m
                             JOIN pg_catalog.pg_roles AS member ON member.oid = m.member
                             WHERE m.roleid = r.oid AND NOT member.rolsuper AND member.oid <> c.relowner))
             AND pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE')
           ORDER BY 1)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::text AND NOT a.attisdropped
CROSS JOIN (
    SELECT ARRAY(SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
                 WHERE n.nspname = 'outbox' AND p.pronargs = 0
                   AND p.proname IN ('stamp_created_at', 'stamp_created_at_by_day')) AS stamping,
           ARRAY(SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
                 WHERE n.nspname = 'outbox' AND p.pronargs = 0 AND p.proname = 'refuse_key_update') AS refusing
) AS ours
-- A refusing trigger that is disabled counts where no other one is enabled: it is to be enabled, and no second one made.
LEFT JOIN LATERAL (
    SELECT t.* FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = c.oid AND t.tgtype & 3 = 3 AND t.tgtype & 16 = 16 AND t.tgfoid <> ALL (ours.stamping)
      AND (t.tgenabled <> 'D' OR t.tgfoid = ANY (ours.refusing) AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_trigger AS o
          WHERE o.tgrelid = c.oid AND o.tgfoid = ANY (ours.refusing) AND o.tgenabled <> 'D'))
    ORDER BY t.tgname DESC LIMIT 1) AS last ON true
WHERE c.oid = ANY ($1::oid[])
ORDER BY c.oid
