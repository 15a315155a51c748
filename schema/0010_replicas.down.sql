-- Back to version 9.
DROP TABLE outbox.schedule_watch;
DROP TABLE outbox.replica;
DROP FUNCTION outbox.rename_cursors(text, text, text);
DROP FUNCTION outbox.remove_cursors(text, text, jsonb);
DROP FUNCTION outbox.relay_belongings(text);
