-- The sessions of this database, this one left out: what each reports, and whether it is the relay's own. A statement of
-- its own, after the clock and before transactions are read.
--
-- The instant at which the message in progress came is null for a session that is idle, between messages or in a
-- transaction: its next message is still to come. A session that is being opened counts where it may run a login trigger,
-- whose now() is not older than the session. An autovacuum worker runs no statement of a client; its transaction counts.
-- A session that is in a transaction and reports no start of it (a walsender never does; track_activities may have been off
-- when it began) is unreported.
-- A walsender's replication command runs for as long as it is connected, and writes nothing. SQL that a walsender runs
-- counts. The relay's own are of this session's role, and run none of the user's SQL: those that do have `sql:` in their
-- names.
SELECT a.pid,
       a.application_name,
       COALESCE(a.state IS NULL AND a.query = '<insufficient privilege>', false) AS hidden,
       COALESCE(a.state = 'disabled', false) AS silent,
       a.xact_start,
       CASE WHEN a.backend_type = 'autovacuum worker' THEN NULL
            WHEN a.state IN ('active', 'fastpath function call') THEN COALESCE(a.query_start, a.backend_start)
            WHEN login.triggers AND a.backend_type = 'client backend' AND (a.state IS NULL OR a.state = 'starting')
                THEN a.backend_start
       END AS message,
       COALESCE(a.usesysid = (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user)
                AND pg_catalog.starts_with(a.application_name, 'outbox-relay/')
                AND NOT pg_catalog.starts_with(a.application_name, 'outbox-relay/sql:'), false) AS own,
       COALESCE(a.xact_start IS NULL AND a.state LIKE 'idle in transaction%', false) AS unreported,
       COALESCE(a.backend_type = 'walsender' AND a.query ~* '^\s*START_REPLICATION\y', false) AS replicates
FROM pg_catalog.pg_stat_get_activity(NULL) AS a
CROSS JOIN (SELECT EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS e WHERE e.evtevent = 'login') AS triggers) AS login
WHERE (a.datid = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
       OR login.triggers AND a.datid IS NULL AND a.backend_type = 'client backend')
  AND a.pid <> pg_catalog.pg_backend_pid()
