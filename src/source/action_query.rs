//! A query of the configuration that an action of a schedule runs: rows as JSON, read as the tenant.
//!
//! Promise: it changes nothing, reads what the tenant's role may read and no more, ends in time, and leaves no trace in the
//! session. The transaction is READ ONLY and always rolled back. The tenant may own functions and views that the query
//! meets, and `RESET ROLE` in one of them would make the relay's role of it: so the query is the body of a temporary
//! function with SECURITY DEFINER, within which PostgreSQL refuses to change the role. That function goes with the
//! rollback, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_postgres::SimpleQueryMessage;

use crate::database::{Session, quote_ident, quote_literal};

mod unanswered;

pub use unanswered::Unanswered;

/// Of all rows of an answer together.
pub const MOST_BYTES: usize = 1 << 20;
/// Beyond the statement's own limit, for the server to say so.
const PATIENCE: Duration = Duration::from_secs(5);

/// `queries.NAME` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// What a schedule names.
    pub name: String,
    /// One SELECT; `$1` is the action's payload as `jsonb`.
    pub sql: String,
    /// The longest it may run.
    pub timeout: Duration,
    /// Whether its answer is worth a report; none: always.
    pub when: Option<Condition>,
    /// How many rows are taken.
    pub max_rows: usize,
}

/// `when` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// There are rows.
    Rows,
    /// The number in this column is above the value, in one row or more.
    Above {
        /// As the query names it.
        column: String,
        /// The bound, itself outside.
        value: f64,
    },
    /// The number in this column is below the value, in one row or more.
    Below {
        /// As the query names it.
        column: String,
        /// The bound, itself outside.
        value: f64,
    },
}

// A bound of the configuration is a finite number.
impl Eq for Condition {}

impl std::hash::Hash for Condition {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Rows => {}
            Self::Above { column, value } | Self::Below { column, value } => (column, value.to_bits()).hash(state),
        }
    }
}

/// What a query has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Each row as a JSON object made by PostgreSQL: numbers have all their digits.
    pub rows: Vec<String>,
    /// There were more rows than `max_rows`.
    pub truncated: bool,
}

/// Runs a query as `role`, with the unqualified names of `schema`. Without a role it runs as the relay's own, without a
/// schema every name needs one.
///
/// # Errors
/// See [`Unanswered`]. Whoever has lent the session closes it then.
pub async fn run(
    session: &Session,
    query: &Query,
    role: Option<&str>,
    schema: Option<&str>,
    payload: &str,
) -> Result<Reported, Unanswered> {
    let all = async {
        let before = standing(session).await?;
        let answer = within(session, query, role, schema, payload).await;
        let tidied = session.batch_execute("ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()").await;
        let answer = answer?;
        tidied.map_err(|error| Unanswered::of_server(query, &error))?;
        // Prepared statements outlive a rollback: one more or one less would meet whoever has the session next.
        if standing(session).await? != before {
            return Err(Unanswered::prepared(query));
        }
        Ok(answer)
    };
    let patience = query.timeout + PATIENCE;
    tokio::time::timeout(patience, all).await.unwrap_or_else(|_| Err(Unanswered::late(query)))
}

async fn standing(session: &Session) -> Result<Option<String>, Unanswered> {
    let sql = "SELECT pg_catalog.string_agg(name, ',' ORDER BY name) FROM pg_catalog.pg_prepared_statements";
    Ok(texts(session, sql).await.map_err(|error| Unanswered::of_session(&error))?.into_iter().next().flatten())
}

async fn within(
    session: &Session,
    query: &Query,
    role: Option<&str>,
    schema: Option<&str>,
    payload: &str,
) -> Result<Reported, Unanswered> {
    let of_server = |error| Unanswered::of_server(query, &error);
    session.batch_execute(&begin(query)).await.map_err(of_server)?;
    if let Some(role) = role {
        become_tenant(session, role).await?;
    }
    session.batch_execute(&wrap(query, schema)).await.map_err(|error| Unanswered::of_wrapper(query, role, &error))?;
    let rows = texts(session, &call(payload)).await.map_err(of_server)?;
    let truncated = rows.len() > query.max_rows;
    let rows: Option<Vec<String>> = rows.into_iter().take(query.max_rows).collect();
    Ok(Reported { rows: rows.ok_or_else(|| Unanswered::too_large(query))?, truncated })
}

/// The session's own settings are made for turns (and a `transaction_timeout` that runs is not made longer by another value, only
/// by none and then another): their plans, their time limits, and no security by rows.
fn begin(query: &Query) -> String {
    let timeout = query.timeout.as_millis().max(1);
    let mut sql = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {timeout}; \
         SET LOCAL lock_timeout = {timeout}; SET LOCAL row_security = on; SET LOCAL check_function_bodies = off; \
         SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'; \
         SELECT pg_catalog.set_config(name, '{}', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'",
        (query.timeout + PATIENCE).as_millis()
    );
    for setting in ["enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"] {
        let _ = write!(sql, "; SET LOCAL {setting} TO DEFAULT");
    }
    sql
}

/// `none` is the one name that is no role to SET ROLE, and a name that is too long would be cut to another's.
async fn become_tenant(session: &Session, role: &str) -> Result<(), Unanswered> {
    // The relay's own role is no tenant's, whoever writes it into a schedule.
    let sql = format!("SET LOCAL ROLE {}; SELECT NULLIF(current_user, session_user)::text", quote_ident(role));
    let (found, denied) = match texts(session, &sql).await {
        Ok(rows) => (rows.into_iter().next().flatten(), None),
        Err(error) if error.as_db_error().is_some() => (None, Some(error)),
        Err(error) => return Err(Unanswered::of_session(&error)),
    };
    if found.as_deref() == Some(role) {
        return Ok(());
    }
    // The transaction has failed, and `session_user` is asked for outside of it.
    let sql = "ROLLBACK; SELECT session_user";
    let relay = texts(session, sql).await.map_err(|error| Unanswered::of_session(&error))?;
    Err(Unanswered::no_role(role, &relay.into_iter().flatten().next().unwrap_or_default(), denied.as_ref()))
}

fn wrap(query: &Query, schema: Option<&str>) -> String {
    let path = schema.map_or_else(|| "pg_temp".to_owned(), |schema| format!("{}, pg_temp", quote_ident(schema)));
    let select = query.sql.trim_end().trim_end_matches(';');
    let body = format!(
        "SELECT pg_catalog.row_to_json(outbox_row)::pg_catalog.text FROM (\n{select}\n) AS outbox_row LIMIT {}",
        query.max_rows.saturating_add(1)
    );
    format!(
        "SET LOCAL search_path = {path}; \
         CREATE FUNCTION pg_temp.outbox_query(pg_catalog.jsonb) RETURNS SETOF pg_catalog.text LANGUAGE sql STABLE \
         SECURITY DEFINER AS {}; SET TRANSACTION READ ONLY",
        quote_literal(&body)
    )
}

/// Rows beyond the bound come as NULL, so that they are neither sent nor held in memory here.
fn call(payload: &str) -> String {
    format!(
        "SELECT CASE WHEN pg_catalog.sum(pg_catalog.octet_length(line)) OVER (ORDER BY n) <= {MOST_BYTES} THEN line END \
         FROM pg_temp.outbox_query({}::pg_catalog.jsonb) WITH ORDINALITY AS answer (line, n) ORDER BY n",
        quote_literal(payload)
    )
}

/// The first column of all rows.
async fn texts(session: &Session, sql: &str) -> Result<Vec<Option<String>>, tokio_postgres::Error> {
    let messages = session.simple_query(sql).await?;
    let text = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row.try_get(0).ok().flatten().map(str::to_owned)),
        _ => None,
    };
    Ok(messages.into_iter().filter_map(text).collect())
}

/// Whether there is something to report.
///
/// # Errors
/// When the rows have no such column, or something in it that is no number. NULL is nothing to report.
pub fn holds(condition: Option<&Condition>, rows: &[String]) -> Result<bool, Unanswered> {
    let (column, is_beyond): (_, Box<dyn Fn(f64) -> bool>) = match condition {
        None => return Ok(true),
        Some(Condition::Rows) => return Ok(!rows.is_empty()),
        Some(Condition::Above { column, value }) => (column, Box::new(move |number| number > *value)),
        Some(Condition::Below { column, value }) => (column, Box::new(move |number| number < *value)),
    };
    let mut any = false;
    for row in rows {
        let row: BTreeMap<&str, &RawValue> =
            serde_json::from_str(row).map_err(|_| Unanswered::no_number(column, "the row is no object"))?;
        let value = row.get(column.as_str()).ok_or_else(|| Unanswered::no_number(column, "there is no such column"))?;
        if value.get() != "null" {
            let number = value.get().parse().map_err(|_| Unanswered::no_number(column, "a value is no number"))?;
            any |= is_beyond(number);
        }
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(condition: &Condition, rows: &[&str]) -> Result<bool, &'static str> {
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        holds(Some(condition), &rows).map_err(|unanswered| unanswered.code)
    }

    #[test]
    fn without_a_condition_there_is_always_a_report_and_without_rows_none_with_one() {
        assert_eq!(holds(None, &[]), Ok(true));
        let (column, value) = ("n".to_owned(), 0.0);
        for condition in
            [Condition::Rows, Condition::Above { column: column.clone(), value }, Condition::Below { column, value }]
        {
            assert_eq!(judged(&condition, &[]), Ok(false));
        }
        assert_eq!(judged(&Condition::Rows, &["{}"]), Ok(true));
    }

    #[test]
    fn a_number_counts_in_any_row_and_null_in_none() {
        let above = Condition::Above { column: "n".to_owned(), value: 10.0 };
        let below = Condition::Below { column: "n".to_owned(), value: 3.0 };
        for (rows, is_above, is_below) in [
            (vec![r#"{"n":10}"#], false, false),
            (vec![r#"{"n":1}"#, r#"{"n":10.5}"#], true, true),
            (vec![r#"{"n":null}"#], false, false),
            (vec![r#"{"n":98765432109876543210987654321.5}"#], true, false),
            (vec![r#"{"m":1,"n":-1e3}"#], false, true),
        ] {
            assert_eq!((judged(&above, &rows), judged(&below, &rows)), (Ok(is_above), Ok(is_below)), "{rows:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_said_also_behind_a_row_that_would_do() {
        let above = Condition::Above { column: "n".to_owned(), value: 10.0 };
        for rows in
            [[r#"{"n":11}"#, r#"{"n":"many"}"#], [r#"{"n":11}"#, r#"{"m":1}"#], [r#"{"n":11}"#, r#"{"n":true}"#]]
        {
            assert_eq!(judged(&above, &rows), Err("query_condition"), "{rows:?}");
        }
    }
}
