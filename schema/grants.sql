GRANT USAGE ON SCHEMA outbox TO :"relay_role";
GRANT SELECT, INSERT, UPDATE ON outbox.cursor, outbox.control, outbox.cursor_status, outbox.operation, outbox.dead_letter TO :"relay_role";
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.claim, outbox.sent TO :"relay_role";
GRANT SELECT ON outbox.version, outbox.status TO :"relay_role";
GRANT SELECT, INSERT ON outbox.template TO :"relay_role";
GRANT SELECT, UPDATE ON outbox.request TO :"relay_role";
GRANT EXECUTE ON FUNCTION outbox.enqueue_once(text, text, text, jsonb, uuid, timestamptz, interval, boolean), outbox.enqueue(text, text, jsonb, uuid, timestamptz) TO :"relay_role";
GRANT SELECT ON outbox.hold, outbox.safe_to_delete, outbox.message_partition TO :"relay_role";
GRANT EXECUTE ON FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer), outbox.prune_messages(interval), outbox.extend_messages(integer), outbox.message_held(text, boolean) TO :"relay_role";
