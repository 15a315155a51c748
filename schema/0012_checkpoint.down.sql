-- Back to version 11: a replica that ends in the midst of a turn repeats the whole turn.
DROP TRIGGER drop_checkpoint ON outbox.cursor;
DROP FUNCTION outbox.drop_checkpoint();
DROP TABLE outbox.checkpoint;
