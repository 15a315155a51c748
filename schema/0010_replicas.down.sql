-- Back to version 9.
DROP TABLE outbox.schedule_watch;
DROP TABLE outbox.replica;
DROP TRIGGER stamp_operation ON outbox.operation;
DROP FUNCTION outbox.stamp_operation();
COMMENT ON COLUMN outbox.operation.operator IS 'Who: database role, and the operating system''s user where known.';
DO $$
DECLARE
    relay text;
BEGIN
    FOR relay IN
        SELECT DISTINCT g.grantee::pg_catalog.regrole::text
        FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS g
        WHERE c.oid = 'outbox.cursor'::pg_catalog.regclass AND g.privilege_type = 'UPDATE' AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE pg_catalog.format('REVOKE INSERT (operator, verb, cursor, detail) ON outbox.operation FROM %s', relay);
        EXECUTE pg_catalog.format('GRANT INSERT, UPDATE ON outbox.operation TO %s', relay);
    END LOOP;
END
$$;
DROP FUNCTION outbox.rename_cursors(text, text, text);
DROP FUNCTION outbox.remove_cursors(text, text, jsonb);
DROP FUNCTION outbox.relay_belongings(text);
