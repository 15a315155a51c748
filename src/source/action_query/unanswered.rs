//! Why a query has no answer.

use tokio_postgres::error::{DbError, Severity, SqlState};

use super::{MOST_BYTES, Query};
use crate::database::{error, quote_ident};
use crate::visible::visible;

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unanswered {
    /// Whether it will pass by itself: the server, not the query. Otherwise this action has failed.
    pub passing: bool,
    /// A short stable word.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What fixes it.
    pub hint: String,
}

/// Classes and codes that tell of the server's state, not of the query.
const PASSING: [&str; 7] = ["08", "40", "53", "55006", "55P03", "57", "58"];

impl Unanswered {
    fn failed(code: &'static str, message: &str, hint: impl Into<String>) -> Self {
        Self { passing: false, code, message: visible(message), hint: hint.into() }
    }

    /// The query ran, and the server ended it with an error.
    pub(super) fn of_server(query: &Query, error: &tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else { return Self::of_session(error) };
        if is_late(db) {
            return Self::late(query);
        }
        let code = db.code().code();
        if PASSING.iter().any(|state| code.starts_with(state)) {
            return Self::of_session(error);
        }
        let message = format!("The query {} failed: {}", query.name, told(db));
        if *db.code() == SqlState::READ_ONLY_SQL_TRANSACTION {
            let hint = "A query reads: take out what writes, also from the functions that it calls";
            return Self::failed("query_writes", &message, hint);
        }
        let hint = "Correct the query, or grant the tenant's role what it reads. Names without a schema are those of the \
                    tenant's";
        Self::failed("query_failed", &message, hint)
    }

    /// The wrapper could not be made: the query has not run.
    pub(super) fn of_wrapper(query: &Query, role: Option<&str>, error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                let role = role.map_or_else(|| "the relay's role".to_owned(), quote_ident);
                let hint = format!("As the database's owner: GRANT TEMPORARY ON DATABASE the_database TO {role}");
                let message = format!("The query {} cannot be guarded: {}", query.name, told(db));
                Self::failed("query_role", &message, hint)
            }
            _ => Self::of_server(query, error),
        }
    }

    /// The server, or the way to it.
    pub(super) fn of_session(error: &tokio_postgres::Error) -> Self {
        Self {
            passing: true,
            code: "query_no_answer",
            message: format!("The query was not answered: {}", error::describe(error)),
            hint: "See the server's log; it is retried".to_owned(),
        }
    }

    pub(super) fn late(query: &Query) -> Self {
        let message = format!("The query {} was ended after {:?}", query.name, query.timeout);
        Self::failed("query_timeout", &message, "Give it an index, or raise its timeout in the configuration")
    }

    pub(super) fn too_large(query: &Query) -> Self {
        let message = format!("The answer of the query {} is above {MOST_BYTES} bytes", query.name);
        Self::failed("query_too_large", &message, "Select fewer columns or rows, or lower its max_rows")
    }

    pub(super) fn prepared(query: &Query) -> Self {
        let message = format!("The query {} has changed the session's prepared statements", query.name);
        Self::failed("query_writes", &message, "Take PREPARE and DEALLOCATE out of the functions that it calls")
    }

    pub(super) fn no_role(role: &str, relay: &str, denied: Option<&tokio_postgres::Error>) -> Self {
        let why = denied.and_then(tokio_postgres::Error::as_db_error).map_or_else(|| "no such role".to_owned(), told);
        let message = format!("The query cannot run as the role {role:?}: {why}");
        let (role, relay) = (quote_ident(role), quote_ident(relay));
        Self::failed("query_role", &message, format!("If the role is meant: GRANT {role} TO {relay}"))
    }

    pub(super) fn no_number(column: &str, why: &str) -> Self {
        let message = format!("The condition on the column {column:?} cannot be judged: {why}");
        Self::failed("query_condition", &message, "Name a column of numbers that the query has")
    }
}

fn told(db: &DbError) -> String {
    format!("{} ({})", db.message(), db.code().code())
}

/// By the limit of the statement or that of the transaction, which ends the session, too.
fn is_late(db: &DbError) -> bool {
    let ends_session = matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    *db.code() == SqlState::QUERY_CANCELED && !ends_session || db.code().code() == "25P04"
}
