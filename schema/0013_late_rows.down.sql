-- Back to version 12.
ALTER TABLE outbox.cursor DROP COLUMN swept_at, DROP COLUMN swept_column;
COMMENT ON COLUMN outbox.cursor.snapshot IS 'The snapshot that the last rows were read with.';
COMMENT ON COLUMN outbox.dead_letter.error IS 'Why: at, class, code, message, hint.';
DROP INDEX outbox.dead_letter_late;
DROP INDEX IF EXISTS outbox.message_txid;
ALTER TABLE outbox.turn_progress DROP COLUMN swept_column;
