-- How created_at ($2) comes about in each relation of the family $1 that rows can be written to: its default, whether the
-- stamping trigger is the last word, and which roles could send a value of their own.
SELECT c.oid,
       c.oid::regclass::text,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid),
       COALESCE((
           SELECT t.tgenabled IN ('O', 'A') AND t.tgfoid = pg_catalog.to_regproc('outbox.stamp_created_at')
                  AND t.tgtype & 1 = 1 AND t.tgtype & 2 = 2 AND t.tgtype & 4 = 4 AND t.tgtype & 16 = 16
                  AND t.tgqual IS NULL AND a.attname = 'created_at'
           FROM pg_catalog.pg_trigger AS t
           WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0
           ORDER BY t.tgname DESC LIMIT 1), false),
       EXISTS (
           SELECT FROM pg_catalog.pg_roles AS r
           WHERE NOT r.rolsuper AND r.oid <> c.relowner AND r.rolname NOT LIKE 'pg\_%'
             AND (pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT')
                  OR pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE'))),
       c.relkind = 'p',
       EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
               WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 3 = 3 AND t.tgtype & 4 = 4 AND t.tgenabled <> 'D')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::text AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.oid = ANY ($1::oid[])
