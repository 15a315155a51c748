-- Casts that are called when columns of the relation $1 (an oid) are read: their functions run with the rights of who reads. Of a
-- column's type and all that it is made of: a domain's base, an array's elements, a composite type's attributes, a range's bounds.
-- Built-in types are cast by built-in functions; a function of a superuser, of an extension for example, is trusted.
WITH RECURSIVE part (name, type) AS (
    SELECT a.attname::text, a.atttypid
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = (SELECT $1::oid) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
    UNION
    SELECT p.name, i.type
    FROM part AS p
    JOIN pg_catalog.pg_type AS t ON t.oid = p.type
    CROSS JOIN LATERAL (
        SELECT t.typbasetype WHERE t.typtype = 'd'
        UNION ALL
        SELECT t.typelem
        UNION ALL
        SELECT a.atttypid
        FROM pg_catalog.pg_attribute AS a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT r.rngsubtype FROM pg_catalog.pg_range AS r WHERE r.rngtypid = t.oid
        UNION ALL
        SELECT r.rngtypid FROM pg_catalog.pg_range AS r WHERE r.rngmultitypid = t.oid
    ) AS i (type)
    WHERE i.type >= 16384
)
SELECT p.name,
       pg_catalog.format_type(c.castsource, NULL),
       pg_catalog.format_type(c.casttarget, NULL),
       f.oid::regprocedure::text,
       r.rolname::text,
       -- When a value is made a text or JSON.
       c.castsource = p.type AND c.casttarget IN ('text'::regtype, 'json'::regtype),
       -- When it is compared.
       c.castsource = p.type AND c.castcontext = 'i',
       -- Of an extension, whose members cannot be dropped by themselves.
       EXISTS (
           SELECT FROM pg_catalog.pg_depend AS d
           WHERE d.classid = 'pg_catalog.pg_cast'::regclass AND d.objid = c.oid AND d.deptype = 'e'
       )
FROM part AS p
JOIN pg_catalog.pg_cast AS c
    ON c.castmethod = 'f' AND (
        c.castsource = p.type AND (c.casttarget IN ('text'::regtype, 'json'::regtype) OR c.castcontext = 'i')
        -- From a text: when a row is found by it.
        OR c.casttarget = p.type AND c.castsource = 'text'::regtype
    )
JOIN pg_catalog.pg_proc AS f ON f.oid = c.castfunc
JOIN pg_catalog.pg_roles AS r ON r.oid = f.proowner
WHERE NOT r.rolsuper
    -- A function of the relay's own role gains no rights; the owner of the schema's tables has them already, by triggers on what the
    -- relay writes.
    AND r.rolname <> current_user
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_class AS o
        JOIN pg_catalog.pg_namespace AS n ON n.oid = o.relnamespace
        WHERE n.nspname = 'outbox' AND o.relname = 'cursor' AND o.relowner = r.oid
    )
ORDER BY p.name, c.castsource, c.casttarget
