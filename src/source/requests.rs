//! Requests of the ledger: what a sink reads of each.
//!
//! A template's name is first one of the request's own columns, then one of its parameters.

use super::TableName;
use crate::database::quote_literal;
use crate::message::Field;

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
}

/// Columns that a sink's templates can name; a parameter of such a name is not seen.
const OWN: [&str; 6] = ["request_id", "dedupe_key", "user_id", "template", "created_at", "not_before"];

impl Requests {
    /// Of the ledger.
    #[must_use]
    pub fn new(templates: Vec<String>, limit: usize, in_flight: usize) -> Self {
        let table = TableName { schema: "outbox".to_owned(), name: "request".to_owned() };
        Self { table, templates, limit, in_flight }
    }
}

/// How many due requests a measurement counts.
pub const CAP: i64 = 10_000;

/// Which requests a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are due.
    Due,
    /// Those that are due for a `run --once`: what failed before it began is tried again, and nothing twice.
    DueOnce,
    /// Those that somebody had when he ended, or was cut off.
    Interrupted,
}

impl Which {
    /// Of row `r`; `$1` is the relay, `$2` when this `run --once` began.
    const fn condition(self) -> &'static str {
        match self {
            Self::Due => {
                "r.relay = $1 AND r.status = 'pending' AND r.not_before <= pg_catalog.now() AND $2::timestamptz IS NULL"
            }
            Self::DueOnce => {
                "r.relay = $1 AND r.status = 'pending' AND CASE WHEN r.attempts = 0 THEN r.not_before <= pg_catalog.now() \
                 ELSE r.updated_at < $2::timestamptz END"
            }
            // A parameter that is not used would have no type.
            Self::Interrupted => {
                "r.relay = $1 AND r.status = 'processing' AND r.expires_at <= pg_catalog.now() \
                 AND ($2::timestamptz IS NULL OR true)"
            }
        }
    }

    /// What is due in this process.
    #[must_use]
    pub const fn due(once: bool) -> Self {
        if once { Self::DueOnce } else { Self::Due }
    }
}

/// One look, without any lock: the clock; since when the first request is due; when the next one will be, within a minute;
/// whether some were interrupted; whether some are on their way, whoever has them.
#[must_use]
pub fn look_sql(once: bool) -> String {
    format!(
        "SELECT pg_catalog.now(), (SELECT r.not_before FROM outbox.request AS r WHERE {due} ORDER BY r.not_before LIMIT 1), \
         (SELECT r.not_before FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'pending' \
         AND r.not_before > pg_catalog.now() AND r.not_before <= pg_catalog.now() + interval '1 minute' \
         AND $2::timestamptz IS NULL ORDER BY r.not_before LIMIT 1), \
         EXISTS (SELECT FROM outbox.request AS r WHERE {interrupted}), \
         EXISTS (SELECT FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'processing')",
        due = Which::due(once).condition(),
        interrupted = Which::Interrupted.condition(),
    )
}

/// Locks requests that nobody else has locked: id, due time, failed tries, what was pinned, whether it was interrupted while
/// it could be sent, whether the receiver may know its key, whether it may have forgotten that key (`$4`: seconds of its
/// memory, or NULL), when it was made; then the fields. `$3`: how many.
#[must_use]
pub fn take_sql(which: Which, fields: &[Field]) -> String {
    format!(
        "SELECT r.request_id::text, r.due_at, r.attempts, r.body, r.status = 'processing' AND r.body IS NOT NULL, \
         r.ambiguous > 0, COALESCE(r.first_tried_at + pg_catalog.make_interval(secs => $4::float8) <= pg_catalog.now(), false) \
         AND (r.ambiguous > 0 OR r.status = 'processing' AND r.body IS NOT NULL), r.created_at{columns} \
         FROM outbox.request AS r WHERE {condition} ORDER BY r.not_before, r.request_id LIMIT $3 FOR UPDATE SKIP LOCKED",
        columns = columns(fields),
        condition = which.condition(),
    )
}

/// Since when the oldest request waits that is due, whether it was tried already or not, and how many there are, at most
/// [`CAP`] of either.
#[must_use]
pub fn backlog_sql() -> &'static str {
    "SELECT pg_catalog.clock_timestamp(), pg_catalog.min(d.due_at), pg_catalog.count(*) FROM (\
     (SELECT r.due_at FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts = 0 \
     AND r.not_before <= pg_catalog.now() ORDER BY r.not_before LIMIT $2) UNION ALL \
     (SELECT r.due_at FROM outbox.request AS r WHERE r.relay = $1 AND r.status = 'pending' AND r.attempts > 0 \
     ORDER BY r.due_at LIMIT $2)) AS d"
}

/// The fields of row `r` as SQL, each behind a comma.
fn columns(fields: &[Field]) -> String {
    let whole = "ARRAY['request_id', 'dedupe_key', 'user_id', 'template', 'created_at', 'not_before', 'parameters']";
    let object = |keys: &str| {
        format!(
            "(SELECT pg_catalog.json_object_agg(e.key, e.value ORDER BY k.ordinality)::text FROM \
             pg_catalog.unnest({keys}) WITH ORDINALITY AS k(name, ordinality) \
             JOIN pg_catalog.json_each(pg_catalog.row_to_json(r)) AS e ON e.key = k.name)"
        )
    };
    let sql = fields.iter().map(|field| match field {
        Field::Row => object(whole),
        Field::Columns(columns) => {
            let names: Vec<_> = columns.iter().map(|column| quote_literal(column)).collect();
            object(&format!("ARRAY[{}]::text[]", names.join(", ")))
        }
        Field::Text(column) | Field::Payload(column) if OWN.contains(&column.as_str()) => format!("r.{column}::text"),
        Field::Text(column) | Field::Payload(column) => format!("r.parameters ->> {}", quote_literal(column)),
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
        assert_eq!(columns(&[]), "");
    }
}
