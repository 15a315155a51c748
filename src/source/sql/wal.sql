-- How far the log is, and up to where each standby has flushed it: positions are bytes from its begin. Logical subscribers and connectors
-- are no standbys, and nor are programs that only copy the log, which apply nothing. Without pg_read_all_stats nothing is said of how far
-- others are.
SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS inserted,
       pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_block_size')) AS page,
       pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')) AS segment,
       standby.pid,
       standby.application_name,
       standby.flushed
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT r.pid, r.application_name, (r.flush_lsn - '0/0'::pg_lsn)::bigint AS flushed
    FROM pg_catalog.pg_stat_replication AS r
    WHERE r.state IN ('catchup', 'streaming')
      AND r.replay_lsn IS NOT NULL
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots AS s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')
) AS standby ON true
