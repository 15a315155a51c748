-- Back to version 8.
ALTER TABLE outbox.cursor DROP COLUMN rule, DROP COLUMN open_since;
