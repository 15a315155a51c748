//! Statements of due rows that are sent in lanes: of each the first that is not sent, and none while another of its lane is on its way or waits.
//!
//! Pure. Parameters as in [`super::sql`]. Claims are made one after the other under the lock of the cursor, so each sees the ones before it; a row
//! that the application changes meanwhile is checked again when it is locked.

use super::due::Due;
use super::sql::Taking;
use crate::message::Field;
use crate::source::lane::Reach;

impl Due {
    /// [`Due::look_sql`] of a relay with lanes, over so many due rows; with one column more: whether there may be others beyond.
    #[must_use]
    pub fn lane_look_sql(&self, rows: usize) -> String {
        let first = format!("SELECT h.at FROM heads AS h ORDER BY {} LIMIT 1", self.raw_order("h"));
        let more = format!("(SELECT pg_catalog.count(*) FROM w) >= {rows}");
        let reach = Reach { jobs: rows, probes: false };
        self.look(&format!("WITH {} ", self.heads("pg_catalog.now()", reach)), &first, &more)
    }

    /// [`Due::claim_sql`] of a relay with lanes: one row of each that has none on its way. `$7`: at most how many, a parameter because each
    /// claim has another room, and a statement would be planned for each.
    #[must_use]
    pub fn lane_claim_sql(&self, fields: &[Field], taking: Taking, reach: Reach) -> String {
        let order = self.raw_order("p");
        let order = if reach.probes { format!("p.failed NULLS FIRST, {order}") } else { order };
        let with = format!("{}, ", self.heads("$3::timestamptz", reach));
        // Of a row that was changed since, the new version counts. Limited behind the lock: a row that the application keeps locked takes no
        // other's place. Without one all is of one snapshot, and no row is read for which there is no room.
        let heads = if self.locks(taking) {
            "heads".to_owned()
        } else {
            format!("(SELECT p.* FROM heads AS p ORDER BY {order} LIMIT $7::bigint)")
        };
        let from = format!(
            "{table} AS t JOIN {heads} AS p ON {same} WHERE {due} AND {unsent}{fits} AND {instant} = p.at AND {lane} = p.lane \
             ORDER BY {order} LIMIT $7::bigint",
            table = self.table(),
            same = self.same("t", "p"),
            due = self.is_due("$3::timestamptz"),
            unsent = self.unsent("t", "$1::text"),
            fits = self.fits(),
            instant = self.instant("t"),
            lane = self.lane("t"),
        );
        self.claim_of(fields, taking, &with, &from)
    }

    /// The lane of row `alias` as a number; NULL without lanes.
    pub(super) fn lane(&self, alias: &str) -> String {
        match &self.config.lanes {
            Some(lanes) => lanes.number(|column| self.text(alias, column)),
            None => "NULL::bigint".to_owned(),
        }
    }

    /// `w`, the first due rows that are not sent, `busy`, the lanes that are, and `heads`: of each lane of `w` the first, where it may be
    /// claimed; for a probe also since when it has `failed`.
    ///
    /// A lane has one claim that keeps it busy (the index `claim_lane`). They are hashed: what is on its way is new to the planner's
    /// statistics, and a join would compare each with each.
    fn heads(&self, now: &str, reach: Reach) -> String {
        let (order, rows) = (self.raw_order("w"), reach.jobs);
        let failed = if reach.probes {
            ", (SELECT c.updated_at FROM outbox.claim AS c WHERE c.relay = $1::text AND c.key = h.key AND c.state = 'waiting') AS failed"
        } else {
            ""
        };
        format!(
            "w AS MATERIALIZED (SELECT {key} AS key, {keys}, {raw} AS raw, {instant} AS at, {lane} AS lane \
             FROM (SELECT {columns} FROM {table} AS t WHERE {due} AND {unsent}{fits} AND {open} ORDER BY {by} LIMIT {rows}) AS t), \
             busy AS MATERIALIZED (SELECT b.lane, b.key FROM outbox.claim AS b WHERE b.relay = $1::text AND b.lane IS NOT NULL AND {busy}), \
             heads AS MATERIALIZED (SELECT h.*{failed} FROM (SELECT DISTINCT ON (w.lane) w.* FROM w ORDER BY w.lane, {order}) AS h \
             WHERE {free} AND (h.lane NOT IN (SELECT b.lane FROM busy AS b) \
             OR (h.lane, h.key) IN (SELECT b.lane, b.key FROM busy AS b)))",
            key = self.key("t"),
            keys = self.key_columns("t"),
            raw = self.due("t"),
            instant = self.instant("t"),
            lane = self.lane("t"),
            columns = self.columns(&[]),
            table = self.table(),
            due = self.is_due(now),
            unsent = self.unsent("t", "$1::text"),
            fits = self.fits(),
            open = self.undecided(),
            by = self.order(),
            free = Self::free(now, "h.at", "h.key"),
            busy = keeps_busy(now),
        )
    }

    /// It is not given up: no dead letter, and no unknown outcome.
    pub(super) fn undecided(&self) -> String {
        format!(
            "COALESCE((SELECT c.state IN ('unknown', 'dead') AND c.due_at >= {instant} FROM outbox.claim AS c \
             WHERE c.relay = $1::text AND c.key = {key}), false) = false",
            instant = self.instant("t"),
            key = self.key("t"),
        )
    }

    /// [`Due::order`] of what has the columns as `raw` and `k0` ….
    pub(super) fn raw_order(&self, alias: &str) -> String {
        let keys: String = (0..self.config.key.len()).map(|n| format!(", {alias}.k{n}")).collect();
        format!("{alias}.raw{keys}")
    }

    /// The keys of claims `w` that are `taken` again, `most` of them: with lanes, one of each that has none on its way.
    pub(super) fn taken_again(&self, taken: &str, most: usize) -> String {
        if self.config.lanes.is_none() {
            return format!(
                "SELECT w.key FROM outbox.claim AS w WHERE w.relay = $1::text AND {taken} ORDER BY w.updated_at LIMIT {most}"
            );
        }
        format!(
            "SELECT d.key FROM (SELECT DISTINCT ON (COALESCE(w.lane::text, w.key::text)) w.key, w.updated_at FROM outbox.claim AS w \
             WHERE w.relay = $1::text AND {taken} AND NOT EXISTS (SELECT FROM outbox.claim AS b WHERE b.relay = $1::text \
             AND b.lane = w.lane AND b.key <> w.key AND {busy}) \
             ORDER BY COALESCE(w.lane::text, w.key::text), w.updated_at) AS d ORDER BY d.updated_at LIMIT {most}",
            busy = keeps_busy("$3::timestamptz"),
        )
    }
}

/// Whether the claim `b` keeps its lane busy. One that is marked and waits is retried before any other of its lane.
fn keeps_busy(now: &str) -> String {
    format!(
        "(b.state IN ('claimed', 'sending') OR b.state = 'waiting' AND b.marked) AND (b.state <> 'claimed' OR b.expires_at > {now})"
    )
}
