-- Back to version 4.
DROP VIEW outbox.safe_to_delete, outbox.hold;
DROP FUNCTION outbox.prune_requests(interval, integer), outbox.prune_dead_letters(interval, integer);
DROP INDEX outbox.dead_letter_resolved;
