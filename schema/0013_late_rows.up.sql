-- Version 13: rows that become visible behind a cursor's position are found, where the table has a column txid and an index over it.
ALTER TABLE outbox.cursor ADD COLUMN swept_at timestamptz, ADD COLUMN swept_column smallint;
COMMENT ON COLUMN outbox.cursor.snapshot IS 'The snapshot that the last rows were read with: every row at or below the position that is visible in it has been dealt with, as long as swept_at is advanced_at.';
COMMENT ON COLUMN outbox.cursor.swept_at IS 'The advance that snapshot belongs to; where it is another than advanced_at, a program that knows nothing of late rows has moved the cursor.';
COMMENT ON COLUMN outbox.cursor.swept_column IS 'The number of the table''s column txid by which late rows are found; NULL: they are not.';
ALTER TABLE outbox.turn_progress ADD COLUMN swept_column smallint;
COMMENT ON COLUMN outbox.turn_progress.swept_column IS 'As in outbox.cursor, of the turn.';
COMMENT ON COLUMN outbox.dead_letter.error IS 'Why: at, class, code, message, hint; late, of a row that came late: the transaction that wrote it.';

-- How many rows came late is asked for by every look of an operator.
CREATE INDEX dead_letter_late ON outbox.dead_letter (cursor) WHERE error ? 'late';

-- A large table would be locked against writers for as long as its index is built: there `outbox-relay check` asks for it.
DO $$
BEGIN
    IF (SELECT pg_catalog.sum(pg_catalog.pg_relation_size(t.relid)) < 64 * 1024 * 1024 FROM pg_catalog.pg_partition_tree('outbox.message') AS t)
        IS NOT FALSE AND pg_catalog.pg_relation_size('outbox.message') < 64 * 1024 * 1024 THEN
        CREATE INDEX message_txid ON outbox.message (txid, created_at, id);
    END IF;
END
$$;

INSERT INTO outbox.version (version, oldest_binary) VALUES (13, 1);
