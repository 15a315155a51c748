//! The statements that mark rows of due work as sent.
//!
//! Pure. `$1` is the relay's name everywhere.

use super::due::Due;

impl Due {
    /// The key's columns as parameters `$2` …, each a `text[]`, and the due times behind them, as the table `d`.
    fn listed(&self) -> String {
        let keys = self.config.key.len();
        let arrays: String = (0..keys).map(|n| format!("pg_catalog.unnest(${}::text[]), ", n + 2)).collect();
        let names: String = (0..keys).map(|n| format!("k{n}, ")).collect();
        format!("ROWS FROM ({arrays}pg_catalog.unnest(${}::timestamptz[])) AS d ({names}at)", keys + 2)
    }

    fn listed_key(&self) -> String {
        let names: Vec<_> = (0..self.config.key.len()).map(|n| format!("d.k{n}")).collect();
        format!("ARRAY[{}]", names.join(", "))
    }

    /// Marks rows that were sent, unless they are due at another time by now, were marked by somebody else, or are locked:
    /// nobody waits for the application. The last parameter is the replica. Columns: the keys of rows that stay unmarked
    /// although they were free: a trigger has swallowed the mark.
    #[must_use]
    pub fn mark_sql(&self) -> String {
        let Some(assignment) = self.assignment(true) else {
            return format!(
                "INSERT INTO outbox.sent AS s (relay, key, due_at, sent_by) SELECT $1::text, {}, d.at, ${}::text FROM {} \
                 ON CONFLICT (relay, key) DO UPDATE SET due_at = GREATEST(s.due_at, excluded.due_at), \
                 sent_at = pg_catalog.clock_timestamp(), sent_by = excluded.sent_by",
                self.listed_key(),
                self.config.key.len() + 3,
                self.listed()
            );
        };
        format!(
            "WITH l AS MATERIALIZED (SELECT {key} AS key, {keys} FROM {listed} JOIN {table} AS t ON {named} \
             WHERE {instant} = d.at AND {unsent} AND ($1::text, ${by}::text) IS NOT NULL FOR NO KEY UPDATE OF t SKIP LOCKED), \
             u AS (UPDATE {table} AS m SET {assignment} FROM l WHERE {same} RETURNING l.key AS key, {unmarked} AS unmarked) \
             SELECT l.key FROM l LEFT JOIN u ON u.key = l.key WHERE u.unmarked IS NOT FALSE",
            key = self.key("t"),
            keys = self.key_columns("t"),
            listed = self.listed(),
            table = self.table(),
            named = self.named("t", |n| format!("d.k{n}")),
            instant = self.instant("t"),
            unsent = self.unsent("t", "$1::text"),
            by = self.config.key.len() + 3,
            same = self.same("m", "l"),
            unmarked = self.unsent("m", "$1::text"),
        )
    }

    /// Ends the claims of rows that were sent, if they still have these tokens: the last parameter, a `text[]`. Columns:
    /// the keys of those claims.
    #[must_use]
    pub fn done_sql(&self) -> String {
        let token = self.config.key.len() + 3;
        let listed = self.listed().replacen(") AS d (", &format!(", pg_catalog.unnest(${token}::text[])) AS d ("), 1);
        format!(
            "DELETE FROM outbox.claim AS c USING {} WHERE c.relay = $1::text AND c.key = {} AND c.token = d.token RETURNING c.key",
            listed.replacen("at)", "at, token)", 1),
            self.listed_key()
        )
    }

    /// Which of the rows are still not marked although they are as they were: somebody holds a lock on them. Columns: key.
    #[must_use]
    pub fn unmarked_sql(&self) -> String {
        format!(
            "SELECT {key} FROM {listed} JOIN {table} AS t ON {named} WHERE {instant} = d.at AND {unsent} \
             AND $1::text IS NOT NULL",
            key = self.key("t"),
            listed = self.listed(),
            table = self.table(),
            named = self.named("t", |n| format!("d.k{n}")),
            instant = self.instant("t"),
            unsent = self.unsent("t", "$1::text"),
        )
    }

    /// Takes the mark of a row back that was marked first and is not to be sent now: `$2` its key as `text[]`. One row: whether
    /// it is there, and whether its mark was taken back; a row that is locked keeps its mark.
    #[must_use]
    pub fn unmark_sql(&self) -> String {
        let Some(assignment) = self.assignment(false) else {
            return include_str!("../sql/pending_unmark.sql").to_owned();
        };
        format!(
            "WITH l AS MATERIALIZED (SELECT {keys} FROM {table} AS t WHERE {named} AND $1::text IS NOT NULL \
             FOR NO KEY UPDATE OF t SKIP LOCKED), \
             u AS (UPDATE {table} AS m SET {assignment} FROM l WHERE {same} RETURNING 1) \
             SELECT EXISTS (SELECT FROM {table} AS t WHERE {named}), EXISTS (SELECT FROM u)",
            keys = self.key_columns("t"),
            table = self.table(),
            named = self.named("t", |n| format!("($2::text[])[{}]", n + 1)),
            same = self.same("m", "l"),
        )
    }

    /// Goes over a page of the relay's marks in `outbox.sent` behind the key `$2`, at most `$4`, and takes those away, with
    /// `prune`, that are older than `$3` seconds and whose row is gone. One row: how many it saw, how many of them are old, how
    /// many of these may go, the last key seen. A key of another number of columns is another configuration's: it stays.
    #[must_use]
    pub fn stale_sql(&self, prune: bool) -> String {
        let gone = if prune {
            "DELETE FROM outbox.sent AS s USING free WHERE s.relay = $1::text AND s.key = free.key AND s.sent_at = free.sent_at \
             RETURNING 1"
        } else {
            "SELECT FROM free"
        };
        format!(
            "WITH page AS MATERIALIZED (SELECT s.key, s.sent_at, \
             s.sent_at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $3::float8) AS old \
             FROM outbox.sent AS s WHERE s.relay = $1::text AND s.key > $2::text[] ORDER BY s.key LIMIT $4::bigint), \
             free AS MATERIALIZED (SELECT p.key, p.sent_at FROM page AS p WHERE p.old \
             AND CASE WHEN pg_catalog.cardinality(p.key) = {columns} THEN \
             NOT EXISTS (SELECT FROM {table} AS t WHERE {named}) \
             AND NOT EXISTS (SELECT FROM outbox.claim AS c WHERE c.relay = $1::text AND c.key = p.key) ELSE false END), \
             gone AS ({gone}) \
             SELECT (SELECT pg_catalog.count(*) FROM page), (SELECT pg_catalog.count(*) FROM page WHERE old), \
             (SELECT pg_catalog.count(*) FROM gone), (SELECT pg_catalog.max(key) FROM page)",
            columns = self.config.key.len(),
            table = self.table(),
            named = self.named("t", |n| format!("p.key[{}]", n + 1)),
        )
    }
}
