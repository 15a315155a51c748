-- Version 18: by what a position is compared. A column that has become another type, or has another collation, can put rows that were
-- not delivered yet before the position.

ALTER TABLE outbox.cursor ADD COLUMN position_order text;
COMMENT ON COLUMN outbox.cursor.position_order IS 'Types and collation of created_at and id when the position was written; NULL: not known.';

INSERT INTO outbox.version (version, oldest_binary) VALUES (18, 1);
