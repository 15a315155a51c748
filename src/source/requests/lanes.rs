//! Statements of requests that are sent in lanes: of each the first that has not ended, and none while another of its lane is on its way or waits.
//!
//! Pure. Order is by the instant for which a request was made, then by its id: neither changes with a retry. Claims are made one after the
//! other under the lock of the cursor, so each sees the ones before it.

use super::{OWN, columns, order_of_own, taken};
use crate::database::quote_literal;
use crate::message::Field;
use crate::source::lane::{Lanes, Reach};

/// As [`super::look_sql`], of a relay with lanes, over so many requests; with one column more: whether there may be others beyond.
#[must_use]
pub fn lane_look_sql(lanes: &Lanes, jobs: usize) -> String {
    let more = format!("(SELECT pg_catalog.count(*) FROM w) >= {jobs}");
    let first = format!("SELECT h.not_before FROM heads AS h ORDER BY {} LIMIT 1", order_of_own("h"));
    super::look(&format!("WITH {} ", heads(lanes, jobs)), &first, &more)
}

/// As [`super::take_sql`], one request of each lane that has none on its way.
#[must_use]
pub fn lane_take_sql(lanes: &Lanes, fields: &[Field], reach: Reach) -> String {
    let order = order_of_own("h");
    let order = if reach.probes { format!("h.failed NULLS FIRST, {order}") } else { order };
    let with = format!(
        "WITH {}, chosen AS MATERIALIZED (SELECT h.request_id FROM heads AS h ORDER BY {order} LIMIT $3) ",
        heads(lanes, reach.jobs)
    );
    // Locked, it is checked again: one that was discarded since is not sent.
    let condition = "r.relay = $1 AND r.status = 'pending' AND r.request_id IN (SELECT c.request_id FROM chosen AS c)";
    taken(&with, &columns(fields), condition, &order_of_own("r"))
}

/// The same of requests that a replica had when it ended.
#[must_use]
pub fn lane_interrupted_sql(lanes: &Lanes, fields: &[Field]) -> String {
    let lane = number(lanes);
    let with = format!(
        "WITH w AS MATERIALIZED (SELECT r.request_id, r.due_at, r.expires_at, {lane} AS lane FROM outbox.request AS r \
         WHERE r.relay = $1 AND r.status = 'processing'), \
         heads AS MATERIALIZED (SELECT DISTINCT ON (w.lane) w.* FROM w \
         WHERE NOT EXISTS (SELECT FROM w AS o WHERE o.lane = w.lane AND o.expires_at > pg_catalog.now()) \
         ORDER BY w.lane, w.due_at, w.request_id), \
         chosen AS MATERIALIZED (SELECT h.request_id FROM heads AS h ORDER BY {} LIMIT $3) ",
        order_of_own("h")
    );
    let condition = "r.relay = $1 AND r.status = 'processing' AND r.expires_at <= pg_catalog.now() \
                     AND ($2::timestamptz IS NULL OR true) AND r.request_id IN (SELECT c.request_id FROM chosen AS c)";
    taken(&with, &columns(fields), condition, &order_of_own("r"))
}

/// `w`, the first requests that are due or wait for a retry, and `heads`: of each of their lanes the first, where it may be claimed.
fn heads(lanes: &Lanes, jobs: usize) -> String {
    let (lane, of_window, of_both, by) = (number(lanes), order_of_own("w"), order_of_own("a"), order_of_own("r"));
    let read = format!(
        "SELECT r.request_id, r.due_at, r.not_before, r.attempts, r.updated_at, {lane} AS lane FROM outbox.request AS r"
    );
    // The first of both by one order: of a lane whose job is among them, none before it is missing.
    format!(
        "w AS MATERIALIZED (SELECT a.* FROM (({read} WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts = 0 \
         AND r.not_before <= pg_catalog.now() ORDER BY r.not_before, r.request_id LIMIT {jobs}) \
         UNION ALL ({read} WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts > 0 ORDER BY {by} LIMIT {jobs})) AS a \
         ORDER BY {of_both} LIMIT {jobs}), \
         busy AS MATERIALIZED (SELECT {lane} AS lane FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'processing'), \
         heads AS MATERIALIZED (SELECT h.*, CASE WHEN h.attempts > 0 THEN h.updated_at END AS failed \
         FROM (SELECT DISTINCT ON (w.lane) w.* FROM w ORDER BY w.lane, {of_window}) AS h \
         WHERE CASE WHEN $2::timestamptz IS NULL THEN h.not_before <= pg_catalog.now() \
         ELSE h.attempts = 0 OR h.updated_at < $2 END AND h.lane NOT IN (SELECT b.lane FROM busy AS b))"
    )
}

/// The lane of row `r`: of a column of the request's own, or of a parameter.
fn number(lanes: &Lanes) -> String {
    lanes.number(|name| match OWN.contains(&name) {
        true => format!("r.{name}"),
        false => format!("r.parameters ->> {}", quote_literal(name)),
    })
}
