//! Requests of the ledger: what a sink reads of each.
//!
//! A template's name is first one of the request's own columns, then one of its parameters.

use super::TableName;
use super::lane::Lanes;
use crate::database::quote_literal;
use crate::message::Field;

mod lanes;

pub use lanes::{lane_interrupted_sql, lane_look_sql, lane_take_sql};

/// `[relay.source.requests]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requests {
    /// The ledger.
    pub table: TableName,
    /// What can be requested of this relay.
    pub templates: Vec<String>,
    /// The most requests that are claimed at once.
    pub limit: usize,
    /// The most requests that a replica sends at the same time.
    pub in_flight: usize,
    /// Which requests are sent in order, one at a time; none where each is on its own.
    pub lanes: Option<Lanes>,
}

/// Columns that a sink's templates can name; a parameter of such a name is not seen.
const OWN: [&str; 6] = ["request_id", "dedupe_key", "user_id", "template", "created_at", "not_before"];

impl Requests {
    /// Of the ledger.
    #[must_use]
    pub fn new(templates: Vec<String>, limit: usize, in_flight: usize) -> Self {
        let table = TableName { schema: "outbox".to_owned(), name: "request".to_owned() };
        Self { table, templates, limit, in_flight, lanes: None }
    }
}

/// How many due requests a measurement counts.
pub const CAP: i64 = 10_000;

/// Which requests a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are due.
    Due,
    /// Those that are due and have not been tried: for a `run --once`.
    DueFirst,
    /// Those that failed before a `run --once` began, whenever they are to be retried: it tries nothing twice.
    DueAgain,
    /// Those that somebody had when he ended, or was cut off.
    Interrupted,
}

impl Which {
    /// Of row `r`; `$1` is the relay, `$2` when this `run --once` began, or NULL. (A parameter that is not used would have no
    /// type.)
    const fn condition(self) -> &'static str {
        match self {
            Self::Due => {
                "r.relay = $1 AND r.status = 'pending' AND r.not_before <= pg_catalog.now() AND $2::timestamptz IS NULL"
            }
            Self::DueFirst => {
                "r.relay = $1 AND r.status = 'pending' AND r.attempts = 0 AND r.not_before <= pg_catalog.now() \
                 AND $2::timestamptz IS NOT NULL"
            }
            Self::DueAgain => {
                "r.relay = $1 AND r.status = 'pending' AND r.attempts > 0 AND r.updated_at < $2::timestamptz"
            }
            Self::Interrupted => {
                "r.relay = $1 AND r.status = 'processing' AND r.expires_at <= pg_catalog.now() \
                 AND ($2::timestamptz IS NULL OR true)"
            }
        }
    }

    /// The order of the index that has them.
    const fn order(self) -> &'static str {
        match self {
            Self::Due | Self::DueFirst => "r.not_before, r.request_id",
            Self::DueAgain => "r.due_at",
            Self::Interrupted => "r.expires_at",
        }
    }

    /// What is due in this process.
    #[must_use]
    pub const fn due(once: bool) -> &'static [Self] {
        if once { &[Self::DueFirst, Self::DueAgain] } else { &[Self::Due] }
    }
}

/// One look, without any lock: the clock; since when the first request is due; when the next one will be, within a minute;
/// whether some were interrupted; whether some are on their way, whoever has them.
#[must_use]
pub fn look_sql(once: bool) -> String {
    let first = |which: &Which| {
        format!(
            "(SELECT r.not_before FROM outbox.request AS r WHERE {} ORDER BY {} LIMIT 1)",
            which.condition(),
            which.order()
        )
    };
    let due: Vec<String> = Which::due(once).iter().map(first).collect();
    look("", &format!("SELECT LEAST({})", due.join(", ")), "false")
}

/// The same behind `with`, with another way to the `first` that is due, and one column `more`.
fn look(with: &str, first: &str, more: &str) -> String {
    format!(
        "{with}SELECT pg_catalog.now(), ({first}), \
         (SELECT r.not_before FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'pending' \
         AND r.not_before > pg_catalog.now() AND r.not_before <= pg_catalog.now() + interval '1 minute' \
         AND $2::timestamptz IS NULL ORDER BY r.not_before LIMIT 1), \
         EXISTS (SELECT FROM outbox.request AS r WHERE {interrupted}), \
         EXISTS (SELECT FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'processing'), {more}",
        interrupted = Which::Interrupted.condition(),
    )
}

/// Locks requests that nobody else has locked: id, due time, failed tries, what was pinned, whether it was interrupted while
/// it could be sent, whether the receiver may know its key, whether it may have forgotten that key (`$4`: seconds of its
/// memory, or NULL), when it was made; then the fields. `$3`: how many.
#[must_use]
pub fn take_sql(which: Which, fields: &[Field]) -> String {
    taken("", &columns(fields), which.condition(), &format!("{} LIMIT $3", which.order()))
}

/// The same of requests `r` of this condition, in this order; it may use what stands in `with`.
fn taken(with: &str, columns: &str, condition: &str, order: &str) -> String {
    format!(
        "{with}SELECT r.request_id::text, r.due_at, r.attempts, r.body, r.status = 'processing' AND r.body IS NOT NULL, \
         r.ambiguous > 0, COALESCE(r.first_tried_at + pg_catalog.make_interval(secs => $4::float8) <= pg_catalog.now(), false) \
         AND (r.ambiguous > 0 OR r.status = 'processing' AND r.body IS NOT NULL), r.created_at{columns} \
         FROM outbox.request AS r WHERE {condition} ORDER BY {order} FOR UPDATE SKIP LOCKED"
    )
}

/// The order in which requests were to be sent, whenever they are retried.
fn order_of_own(alias: &str) -> String {
    format!("{alias}.due_at, {alias}.request_id")
}

/// Since when the oldest request waits that is due, is retried, or is in the hands of a replica, which may be gone; and how
/// many there are, at most [`CAP`] of each kind.
#[must_use]
pub fn backlog_sql() -> &'static str {
    include_str!("sql/requests_backlog.sql")
}

/// The fields of row `r` as SQL, each behind a comma. Nothing else of the row is read: what was pinned may be large.
fn columns(fields: &[Field]) -> String {
    let text = |name: &str| match OWN.contains(&name) {
        true => format!("r.{name}::text"),
        false => format!("r.parameters ->> {}", quote_literal(name)),
    };
    let member = |name: &str| match OWN.contains(&name) {
        true => format!("{}, r.{name}", quote_literal(name)),
        false => format!("{0}, r.parameters -> {0}", quote_literal(name)),
    };
    let object = |members: Vec<String>| format!("pg_catalog.json_build_object({})::text", members.join(", "));
    let sql = fields.iter().map(|field| match field {
        Field::Row | Field::Debezium(None) => {
            object(OWN.iter().map(|name| member(name)).chain(["'parameters', r.parameters".to_owned()]).collect())
        }
        Field::Columns(columns) | Field::Debezium(Some(columns)) => {
            object(columns.iter().map(|name| member(name)).collect())
        }
        Field::Text(column) | Field::Payload(column) => text(column),
        Field::Matches => "true::text".to_owned(),
    });
    sql.map(|sql| format!(", {sql}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_column_of_the_ledger_or_a_parameter_and_never_sql() {
        let fields = ["user_id", "body", "x'); DROP TABLE outbox.request; --"].map(|name| Field::Text(name.to_owned()));
        assert_eq!(
            columns(&fields),
            ", r.user_id::text, r.parameters ->> 'body', r.parameters ->> 'x''); DROP TABLE outbox.request; --'"
        );
        let some = Field::Columns(vec!["template".to_owned(), "it's".to_owned()]);
        assert_eq!(
            columns(&[some]),
            ", pg_catalog.json_build_object('template', r.template, 'it''s', r.parameters -> 'it''s')::text"
        );
        assert_eq!(columns(&[]), "");
    }
}
