GRANT USAGE ON SCHEMA outbox TO :"relay_role";
GRANT SELECT, INSERT, UPDATE ON outbox.cursor, outbox.control, outbox.cursor_status, outbox.operation, outbox.dead_letter TO :"relay_role";
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.claim, outbox.sent TO :"relay_role";
GRANT SELECT ON outbox.version, outbox.status TO :"relay_role";
