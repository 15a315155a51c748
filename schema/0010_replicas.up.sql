-- Version 10: replicas are rows, so that a replica with another configuration is seen, and who was there at an instant is known.

-- A replica writes its row when it starts, when what it reports changes (at most once a minute after the start), and when it
-- stops; whether it lives is shown by its sessions, not by this table. A row of a few hundred bytes is all that is ever read.
CREATE TABLE outbox.replica (
    instance   uuid        PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    id         text        NOT NULL,
    version    text        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    stopped_at timestamptz,
    relays     jsonb       NOT NULL DEFAULT '[]',
    CONSTRAINT replica_id_length CHECK (pg_catalog.length(id) BETWEEN 1 AND 100),
    CONSTRAINT replica_relays_array CHECK (pg_catalog.jsonb_typeof(relays) = 'array')
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, fillfactor = 70);
CREATE INDEX replica_by_id ON outbox.replica (id, started_at);
COMMENT ON TABLE outbox.replica IS 'Processes of `outbox-relay run`: what each runs with, and since when. Rows of processes that have ended are deleted after a while.';
COMMENT ON COLUMN outbox.replica.instance IS 'Names the process; a replica that restarts is another one.';
COMMENT ON COLUMN outbox.replica.id IS 'The replica''s id: --replica-id, or the host name and process id.';
COMMENT ON COLUMN outbox.replica.version IS 'The program''s version.';
COMMENT ON COLUMN outbox.replica.started_at IS 'When the process started, by this server''s clock.';
COMMENT ON COLUMN outbox.replica.seen_at IS 'When the process last wrote this row, or when another replica last found one of its sessions.';
COMMENT ON COLUMN outbox.replica.stopped_at IS 'When the process stopped in order, or when another replica found no session of it. NULL: not known to have stopped.';
COMMENT ON COLUMN outbox.replica.relays IS 'Its relays: name, config_hash, refused (null, or code and message).';

INSERT INTO outbox.version (version, oldest_binary) VALUES (10, 1);
