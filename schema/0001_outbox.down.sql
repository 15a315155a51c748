-- Takes everything of migration 1 away, cursors and unpublished messages included.
DROP SCHEMA outbox CASCADE;
