//! The statements of due work.
//!
//! Pure. `$1` is the relay's name everywhere.

use super::due::Due;
use crate::message::Field;
use crate::source::shape;

/// How many due rows a measurement counts.
pub const CAP: i64 = 10_000;

/// Which rows a claim takes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// Claimed now, marked when they were sent.
    MarkLater,
    /// Marked now, in the transaction of the claim.
    MarkFirst,
}

impl Due {
    /// Whether a claim, which may be an old one, keeps the row from being claimed at `now`. `$2`: when this `run --once`
    /// began, or NULL; it tries again what failed before, and nothing twice.
    fn free(&self, now: &str) -> String {
        format!(
            "COALESCE((SELECT CASE c.state \
             WHEN 'claimed' THEN c.expires_at > {now} \
             WHEN 'sending' THEN true \
             WHEN 'waiting' THEN CASE WHEN $2::timestamptz IS NULL THEN c.not_before > {now} ELSE c.updated_at >= $2 END \
             ELSE c.due_at >= {} END \
             FROM outbox.claim AS c WHERE c.relay = $1::text AND c.key = {}), false) = false",
            self.instant("t"),
            self.key("t")
        )
    }

    fn open(&self, now: &str) -> String {
        format!("{} AND {}{} AND {}", self.is_due(now), self.unsent("t", "$1::text"), self.fits(), self.free(now))
    }

    /// One look, without any lock: the clock; when the first open row was due; when the next one will be, within a minute;
    /// whether claimed rows wait for another try; whether somebody's claim has run out while he was sending.
    #[must_use]
    pub fn look_sql(&self) -> String {
        let (table, instant, order) = (self.table(), self.instant("t"), self.order());
        let soon = "(pg_catalog.now() + interval '1 minute')";
        format!(
            "SELECT pg_catalog.now(), \
             (SELECT {instant} FROM {table} AS t WHERE {open} ORDER BY {order} LIMIT 1), \
             (SELECT {instant} FROM {table} AS t WHERE {later} AND {instant} > pg_catalog.now() ORDER BY {order} LIMIT 1), \
             EXISTS (SELECT FROM outbox.claim AS w WHERE w.relay = $1::text AND w.state = 'waiting' AND {again}), \
             EXISTS (SELECT FROM outbox.claim AS x WHERE x.relay = $1::text AND x.state = 'sending' \
             AND x.expires_at <= pg_catalog.now())",
            open = self.open("pg_catalog.now()"),
            later = self.open(soon),
            again = again("w", "pg_catalog.now()"),
        )
    }

    /// Claims at most `most` rows that are due at `$3`, oldest first. `$4` token, `$5` replica, `$6` seconds until the claim
    /// runs out. Columns: key, due at, failed attempts, then the fields.
    #[must_use]
    pub fn claim_sql(&self, fields: &[Field], taking: Taking, most: usize) -> String {
        let lock =
            if taking == Taking::MarkFirst && self.marks_rows() { " FOR NO KEY UPDATE OF t SKIP LOCKED" } else { "" };
        let due = format!(
            "due AS MATERIALIZED (SELECT {keys}, {key} AS key, {instant} AS at, {raw} AS raw{values} FROM {table} AS t \
             WHERE {open} ORDER BY {order} LIMIT {most}{lock})",
            keys = self.key_columns("t"),
            key = self.key("t"),
            instant = self.instant("t"),
            raw = self.due("t"),
            values = self.values(fields),
            table = self.table(),
            open = self.open("$3::timestamptz"),
            order = self.order(),
        );
        let (marked, source, state) = match taking {
            Taking::MarkLater => (String::new(), "due", "claimed"),
            Taking::MarkFirst => (format!("{}, ", self.mark_first()), "due JOIN marked USING (key)", "sending"),
        };
        let names: String = (0..fields.len()).map(|n| format!(", due.f{n}")).collect();
        let keys: String = (0..self.config.key.len()).map(|n| format!(", due.k{n}")).collect();
        format!(
            "WITH {due}, {marked}claimed AS (INSERT INTO outbox.claim AS c (relay, key, due_at, state, token, claimed_by, \
             expires_at) SELECT $1::text, key, at, '{state}', $4::text, $5::text, \
             pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6::float8) FROM {source} \
             ON CONFLICT (relay, key) DO UPDATE SET due_at = excluded.due_at, state = excluded.state, \
             token = excluded.token, claimed_by = excluded.claimed_by, claimed_at = pg_catalog.clock_timestamp(), \
             expires_at = excluded.expires_at, not_before = NULL, updated_at = pg_catalog.clock_timestamp(), \
             attempts = CASE WHEN c.due_at = excluded.due_at THEN c.attempts ELSE 0 END \
             RETURNING c.key, c.attempts) \
             SELECT due.key, due.at, claimed.attempts{names} FROM due JOIN claimed ON claimed.key = due.key \
             ORDER BY due.raw{keys}"
        )
    }

    /// Marks what is claimed, in the claim's own transaction; another's mark in between keeps the row from being claimed.
    fn mark_first(&self) -> String {
        match self.assignment(true) {
            Some(assignment) => format!(
                "marked AS (UPDATE {} AS u SET {assignment} FROM due WHERE {} AND {} RETURNING due.key)",
                self.table(),
                self.same("u", "due"),
                self.unsent("u", "$1::text")
            ),
            None => "marked AS (INSERT INTO outbox.sent AS s (relay, key, due_at, sent_by) \
                     SELECT $1::text, key, at, $5::text FROM due ON CONFLICT (relay, key) DO UPDATE SET \
                     due_at = excluded.due_at, sent_at = pg_catalog.clock_timestamp(), sent_by = excluded.sent_by \
                     RETURNING s.key)"
                .to_owned(),
        }
    }

    /// Under [`Taking::MarkFirst`], takes up to `most` rows again that were provably not sent. Parameters as in
    /// [`Self::claim_sql`]. Columns: key, due at, failed attempts, whether the row is still there and due, then the fields.
    #[must_use]
    pub fn retake_sql(&self, fields: &[Field], most: usize) -> String {
        let names: String = (0..fields.len()).map(|n| format!(", x.f{n}")).collect();
        format!(
            "WITH took AS (UPDATE outbox.claim AS c SET state = 'sending', token = $4::text, claimed_by = $5::text, \
             claimed_at = pg_catalog.clock_timestamp(), not_before = NULL, updated_at = pg_catalog.clock_timestamp(), \
             expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6::float8) \
             WHERE c.relay = $1::text AND c.key IN (SELECT w.key FROM outbox.claim AS w WHERE w.relay = $1::text \
             AND w.state = 'waiting' AND {again} ORDER BY w.not_before LIMIT {most}) \
             RETURNING c.key, c.due_at, c.attempts) \
             SELECT took.key, took.due_at, took.attempts, x.there IS TRUE{names} FROM took LEFT JOIN LATERAL \
             (SELECT {due}{fits} AS there{values} FROM {table} AS t WHERE {named}) AS x ON true ORDER BY took.due_at, took.key",
            again = again("w", "$3::timestamptz"),
            due = self.is_due("$3::timestamptz"),
            fits = self.fits(),
            values = self.values(fields),
            table = self.table(),
            named = self.named("t", |n| format!("took.key[{}]", n + 1)),
        )
    }

    fn values(&self, fields: &[Field]) -> String {
        let values = fields.iter().enumerate();
        values.map(|(n, field)| format!(", {} AS f{n}", shape::value(field, &self.bytea_columns))).collect()
    }

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
    /// nobody waits for the application. The last parameter is the replica.
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
            "WITH l AS MATERIALIZED (SELECT {keys} FROM {listed} JOIN {table} AS t ON {named} WHERE {instant} = d.at \
             AND {unsent} AND ($1::text, ${by}::text) IS NOT NULL FOR NO KEY UPDATE OF t SKIP LOCKED) \
             UPDATE {table} AS u SET {assignment} FROM l WHERE {same}",
            keys = self.key_columns("t"),
            listed = self.listed(),
            table = self.table(),
            named = self.named("t", |n| format!("d.k{n}")),
            instant = self.instant("t"),
            unsent = self.unsent("t", "$1::text"),
            by = self.config.key.len() + 3,
            same = self.same("u", "l"),
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

    /// Takes the mark of a row back that was marked first and is not to be sent now: `$2` its key as `text[]`.
    #[must_use]
    pub fn unmark_sql(&self) -> String {
        match self.assignment(false) {
            Some(assignment) => format!(
                "UPDATE {} AS t SET {assignment} WHERE {} AND $1::text IS NOT NULL",
                self.table(),
                self.named("t", |n| format!("($2::text[])[{}]", n + 1))
            ),
            None => "DELETE FROM outbox.sent WHERE relay = $1::text AND key = $2::text[]".to_owned(),
        }
    }

    /// What is due and not sent, by whoever it is held: when the oldest was due, and how many there are, up to `$2`. Rows
    /// that are put aside or whose outcome is unknown do not count.
    #[must_use]
    pub fn backlog_sql(&self) -> String {
        format!(
            "SELECT pg_catalog.now(), pg_catalog.min(at), pg_catalog.count(*) FROM (SELECT {instant} AS at FROM {table} AS t \
             WHERE {due} AND {unsent}{fits} AND COALESCE((SELECT c.state IN ('unknown', 'dead') AND c.due_at >= {instant} \
             FROM outbox.claim AS c WHERE c.relay = $1::text AND c.key = {key}), false) = false \
             ORDER BY {order} LIMIT $2::bigint) AS backlog",
            instant = self.instant("t"),
            table = self.table(),
            due = self.is_due("pg_catalog.now()"),
            unsent = self.unsent("t", "$1::text"),
            fits = self.fits(),
            key = self.key("t"),
            order = self.order(),
        )
    }
}

/// A waiting claim may be tried again.
fn again(alias: &str, now: &str) -> String {
    format!("CASE WHEN $2::timestamptz IS NULL THEN {alias}.not_before <= {now} ELSE {alias}.updated_at < $2 END")
}
