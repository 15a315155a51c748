//! The statements of due work.
//!
//! Pure. `$1` is the relay's name everywhere.

use super::due::Due;
use super::redrive::is_redriven;
use crate::message::Field;
use crate::position::instant_sql;

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
    /// began, or NULL; it retries what failed before, and nothing twice.
    pub(super) fn free(now: &str, at: &str, key: &str) -> String {
        format!(
            "COALESCE((SELECT CASE c.state \
             WHEN 'claimed' THEN c.expires_at > {now} \
             WHEN 'sending' THEN true \
             WHEN 'waiting' THEN CASE WHEN $2::timestamptz IS NULL THEN c.not_before > {now} ELSE c.updated_at >= $2 END \
             ELSE c.due_at >= {at} END \
             FROM outbox.claim AS c WHERE c.relay = $1::text AND c.key = {key}), false) = false"
        )
    }

    fn open(&self, now: &str) -> String {
        let free = Self::free(now, &self.instant("t"), &self.key("t"));
        format!("{} AND {}{} AND {free}", self.is_due(now), self.unsent("t", "$1::text"), self.fits())
    }

    /// One look, without any lock: the clock; when the first open row was due; when the next one will be, within a minute;
    /// whether marked rows wait for another try; whether somebody's claim has run out while he was sending; whether a dead
    /// letter is to be sent again; whether rows are on their way, whoever has them.
    #[must_use]
    pub fn look_sql(&self) -> String {
        let (table, instant, order) = (self.table(), self.instant("t"), self.order());
        let open = self.open("pg_catalog.now()");
        let first = format!("SELECT {instant} FROM {table} AS t WHERE {open} ORDER BY {order} LIMIT 1");
        self.look("", &first, "false")
    }

    /// The same behind `with`, with another way to the `first` open row, and one column `more`.
    pub(super) fn look(&self, with: &str, first: &str, more: &str) -> String {
        let (table, instant, order) = (self.table(), self.instant("t"), self.order());
        let soon = "(pg_catalog.now() + interval '1 minute')";
        format!(
            "{with}SELECT pg_catalog.now(), ({first}), \
             (SELECT {instant} FROM {table} AS t WHERE {later} AND NOT ({due_now}) ORDER BY {order} LIMIT 1), \
             EXISTS (SELECT FROM outbox.claim AS w WHERE w.relay = $1::text AND w.state = 'waiting' AND w.marked AND {again}), \
             EXISTS (SELECT FROM outbox.claim AS x WHERE x.relay = $1::text AND x.state = 'sending' \
             AND x.expires_at <= pg_catalog.now()), \
             {redrives}, \
             EXISTS (SELECT FROM outbox.claim AS o WHERE o.relay = $1::text AND o.state IN ('claimed', 'sending') \
             AND o.expires_at > pg_catalog.now()), {more}",
            later = self.open(soon),
            due_now = self.is_due("pg_catalog.now()"),
            again = again("w", "pg_catalog.now()"),
            redrives = self.redrives(),
        )
    }

    /// Claims at most `most` rows that are due at `$3`, oldest first. `$4` token, `$5` replica, `$6` seconds until the claim
    /// runs out. Columns: key, due at, failed attempts (NULL: it
    /// could not be marked, and is not claimed), then the fields, and the row's length.
    #[must_use]
    pub fn claim_sql(&self, fields: &[Field], taking: Taking, most: usize) -> String {
        let (table, open, order) = (self.table(), self.open("$3::timestamptz"), self.order());
        let from = format!("{table} AS t WHERE {open} ORDER BY {order} LIMIT {most}");
        self.claim_of(fields, taking, "", &from)
    }

    /// Claims the rows `t` of `from`, which may use what stands in `with`.
    pub(super) fn claim_of(&self, fields: &[Field], taking: Taking, with: &str, from: &str) -> String {
        let lock = if self.locks(taking) { " FOR NO KEY UPDATE OF t SKIP LOCKED" } else { "" };
        // What is read of a row is made behind the limit: without an index in this order, PostgreSQL makes it of every row that is due
        // before it sorts them.
        let due = format!(
            "due AS MATERIALIZED (SELECT {keys}, {key} AS key, {instant} AS at, {raw} AS raw, {lane} AS lane{values} \
             FROM (SELECT {columns} FROM {from}{lock}) AS t)",
            keys = self.key_columns("t"),
            key = self.key("t"),
            instant = self.instant("t"),
            raw = self.due("t"),
            lane = self.lane("t"),
            values = self.values(fields),
            columns = self.columns(fields),
        );
        // An outcome that is unknown stays listed when its row is due again.
        let kept = format!(
            "kept AS (INSERT INTO outbox.claim (relay, key, due_at, state, marked, token, attempts, claimed_by, claimed_at, error, \
             updated_at) SELECT u.relay, u.key || {instant}, u.due_at, u.state, u.marked, u.token, u.attempts, u.claimed_by, \
             u.claimed_at, u.error, u.updated_at FROM outbox.claim AS u JOIN one ON u.key = one.key \
             WHERE u.relay = $1::text AND u.state = 'unknown' AND u.due_at <> one.at ON CONFLICT (relay, key) DO NOTHING)",
            instant = instant_sql!("u.due_at"),
        );
        let (marking, source, state) = match taking {
            Taking::MarkLater => (String::new(), "one", "'claimed', false"),
            Taking::MarkFirst => (format!("{}, ", self.mark_first()), "one JOIN marked USING (key)", "'sending', true"),
        };
        let names = self.read(fields, "one");
        let keys: String = (0..self.config.key.len()).map(|n| format!(", one.k{n}")).collect();
        // All that is claimed is one of them. A full join is hashed: the planner expects one row, and would compare each with each.
        format!(
            "WITH {with}{due}, one AS MATERIALIZED (SELECT DISTINCT ON (key) * FROM {within} ORDER BY key, at), {marking}{kept}, \
             claimed AS (INSERT INTO outbox.claim AS c (relay, key, due_at, state, marked, token, \
             claimed_by, expires_at, lane) SELECT $1::text, key, at, {state}, $4::text, $5::text, \
             pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6::float8), lane FROM {source} \
             ON CONFLICT (relay, key) DO UPDATE SET due_at = excluded.due_at, state = excluded.state, marked = excluded.marked, \
             lane = excluded.lane, token = excluded.token, claimed_by = excluded.claimed_by, claimed_at = pg_catalog.clock_timestamp(), \
             expires_at = excluded.expires_at, not_before = NULL, updated_at = pg_catalog.clock_timestamp(), \
             attempts = CASE WHEN c.due_at = excluded.due_at THEN c.attempts ELSE 0 END \
             RETURNING c.key, c.attempts) \
             SELECT one.key, one.at, claimed.attempts{names} FROM one FULL JOIN claimed ON claimed.key = one.key \
             ORDER BY one.raw{keys}",
            within = self.within_budget(fields)
        )
    }

    /// Whether a claim locks the table's rows.
    pub(super) fn locks(&self, taking: Taking) -> bool {
        taking == Taking::MarkFirst && self.marks_rows()
    }

    /// Marks what is claimed, in the claim's own transaction; another's mark in between keeps the row from being claimed.
    fn mark_first(&self) -> String {
        match self.assignment(true) {
            Some(assignment) => format!(
                "marked AS (UPDATE {} AS u SET {assignment} FROM one WHERE {} AND {} RETURNING one.key)",
                self.table(),
                self.same("u", "one"),
                self.unsent("u", "$1::text")
            ),
            None => "marked AS (INSERT INTO outbox.sent AS s (relay, key, due_at, sent_by) \
                     SELECT $1::text, key, at, $5::text FROM one ON CONFLICT (relay, key) DO UPDATE SET \
                     due_at = excluded.due_at, sent_at = pg_catalog.clock_timestamp(), sent_by = excluded.sent_by \
                     RETURNING s.key)"
                .to_owned(),
        }
    }

    /// Takes up to `most` rows again that are marked and were provably not sent: nobody else will. That holds also when the
    /// guarantee has become another since. Parameters as in [`Self::claim_sql`]. Columns: key, due at, failed attempts,
    /// whether the row is still there and due as it was, whether it is marked, then the fields, and the row's length.
    #[must_use]
    pub fn retake_sql(&self, fields: &[Field], most: usize) -> String {
        let waiting = format!("w.state = 'waiting' AND w.marked AND {}", again("w", "$3::timestamptz"));
        self.take_sql(fields, &waiting, "true", most)
    }

    /// The same of rows that were dead-lettered and that an operator wants sent again. One that is not marked must not have been
    /// marked by somebody else meanwhile.
    #[must_use]
    pub fn redrive_sql(&self, fields: &[Field], taking: Taking, most: usize) -> String {
        let chosen = format!(
            "w.state = 'dead' AND {} AND $2::timestamptz IS NOT DISTINCT FROM $2 AND {}",
            if taking == Taking::MarkFirst { "w.marked" } else { "true" },
            is_redriven("w")
        );
        let unsent = self.unsent("t", "$1::text");
        self.take_sql(fields, &chosen, &format!("(took.marked OR {unsent})"), most)
    }

    fn take_sql(&self, fields: &[Field], chosen: &str, unsent: &str, most: usize) -> String {
        let names = self.read(fields, "x");
        format!(
            "WITH took AS (UPDATE outbox.claim AS c SET state = CASE WHEN c.marked THEN 'sending' ELSE 'claimed' END, \
             token = $4::text, claimed_by = $5::text, claimed_at = pg_catalog.clock_timestamp(), not_before = NULL, \
             updated_at = pg_catalog.clock_timestamp(), \
             expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6::float8), \
             lane = {lane} WHERE c.relay = $1::text AND c.key IN ({again}) \
             RETURNING c.key, c.due_at, c.attempts, c.marked) \
             SELECT took.key, took.due_at, took.attempts, x.there IS TRUE, took.marked{names} FROM took LEFT JOIN LATERAL \
             (SELECT {instant} = took.due_at AND {due} AND {unsent}{fits} AS there{values} FROM {table} AS t WHERE {named}) AS x \
             ON true ORDER BY took.due_at, took.key",
            lane = if self.config.lanes.is_some() { "c.lane" } else { "NULL" },
            again = self.taken_again(chosen, most),
            instant = self.instant("t"),
            due = self.is_due("$3::timestamptz"),
            fits = self.fits_by_key(),
            values = self.values(fields),
            table = self.table(),
            named = self.named("t", |n| format!("took.key[{}]", n + 1)),
        )
    }

    /// What is due and not sent, by whoever it is held: when the oldest was due, and how many there are, up to `$2`. Rows
    /// that are dead-lettered or whose outcome is unknown do not count.
    #[must_use]
    pub fn backlog_sql(&self) -> String {
        format!(
            "SELECT pg_catalog.now(), pg_catalog.min(at), pg_catalog.count(*) FROM (SELECT {instant} AS at FROM {table} AS t \
             WHERE {due} AND {unsent}{fits} AND {open} \
             ORDER BY {order} LIMIT $2::bigint) AS backlog",
            instant = self.instant("t"),
            table = self.table(),
            due = self.is_due("pg_catalog.now()"),
            unsent = self.unsent("t", "$1::text"),
            fits = self.fits(),
            open = self.undecided(),
            order = self.order(),
        )
    }
}

/// A waiting claim may be retried.
fn again(alias: &str, now: &str) -> String {
    format!("CASE WHEN $2::timestamptz IS NULL THEN {alias}.not_before <= {now} ELSE {alias}.updated_at < $2 END")
}
