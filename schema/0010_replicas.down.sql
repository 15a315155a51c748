-- Back to version 9.
DROP TABLE outbox.replica;
