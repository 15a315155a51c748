-- Back to version 11: a replica that ends in the midst of a turn repeats the whole turn.
DROP TRIGGER drop_turn_progress ON outbox.cursor;
DROP FUNCTION outbox.drop_turn_progress();
DROP TABLE outbox.turn_progress;
