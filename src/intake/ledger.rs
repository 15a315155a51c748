//! The ledger behind the routes: the functions that producers call in SQL, called for those who cannot.
//!
//! A call is one statement, committed by itself. What PostgreSQL answers with an error was not recorded, unless the
//! connection ended with it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::call::Call;
use super::keys::{Keys, RefusedCall};
use super::problem::{Fault, Problem};
use crate::database::{self, Error, Fragile, Pool};
use crate::pace::Pace;
use crate::position::{Timestamp, utc};

/// The id is made here, so that the answer tells a new request from one that was there.
const ONCE: &str = include_str!("sql/ledger_once.sql");

/// A request that the statement's snapshot lacks is new, and new ones begin as pending.
const EACH: &str = include_str!("sql/ledger_each.sql");

/// How long a statement waits for a lock: about as long as any call takes, so that a call with a busy key keeps the others no
/// longer than one with a free key would.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_millis(2);
/// The first pause before the next attempt, and the longest.
const LOCK_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

const COLUMNS: &str = "request_id::text, dedupe_key, user_id, template, status, attempts, ambiguous, provider_id, \
                       created_at, not_before, completed_at, error::text";

/// Where a request stands after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Enqueued {
    pub(super) request_id: String,
    pub(super) status: String,
    pub(super) already_sent: bool,
    /// Whether it was there when the call began.
    pub(super) repeated: bool,
}

/// Which request is asked for.
#[derive(Clone, Debug)]
pub(super) enum WantedRequest {
    Id(String),
    Key(String),
}

/// Why an attempt recorded nothing.
enum Failure {
    /// A transaction elsewhere holds the key or the id.
    Locked,
    /// All else: the answer.
    Answered(Problem),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    pool: Pool,
    keys: Keys,
    /// One permit for each connection that retries of busy keys may have: half of them, so that first attempts find one.
    retries: Semaphore,
    /// What is left to a statement at least; a call that has no connection by then is not begun.
    reserve: Duration,
}

impl Ledger {
    pub(super) fn new(pool: Pool, reserve: Duration) -> Self {
        let retries = Semaphore::new((pool.status().max_size / 2).max(1));
        Self { pool, keys: Keys::new(), retries, reserve }
    }

    /// Creates the request, or finds the one that is there. While a transaction elsewhere holds its key or id, it is retried:
    /// no call waits on a connection for longer than [`LOCK_TIMEOUT`].
    pub(super) async fn enqueue(&self, call: &Call, deadline: Instant) -> Result<Enqueued, Problem> {
        let until = deadline - self.reserve;
        let _turns = self.keys.enter(call, until).await.map_err(locked)?;
        let mut attempted = self.attempt(call, deadline).await;
        let mut place = None;
        let mut pace = Pace::new(LOCK_PAUSE.0, LOCK_PAUSE.1);
        loop {
            match attempted {
                Err(Failure::Answered(problem)) => return Err(problem),
                Err(Failure::Locked) if place.is_none() => place = Some(self.keys.place().map_err(locked)?),
                Err(Failure::Locked) => {}
                Ok(enqueued) => return Ok(enqueued),
            }
            let next = Instant::now() + pace.after(false);
            if next > until {
                return Err(locked(RefusedCall::Late));
            }
            sleep_until(next).await;
            let permit = timeout_at(until, self.retries.acquire()).await.map_err(|_| locked(RefusedCall::Late))?;
            attempted = self.attempt(call, deadline).await;
            drop(permit);
        }
    }

    /// One statement, on a connection that is free again after it.
    async fn attempt(&self, call: &Call, deadline: Instant) -> Result<Enqueued, Failure> {
        #[expect(clippy::cast_precision_loss, reason = "whole seconds of at most a century")]
        let dedupe_for = call.dedupe_for.map(|duration| duration.as_secs() as f64);
        let common: [(&(dyn ToSql + Sync), Type); 3] =
            [(&call.user_id, Type::TEXT), (&call.template, Type::TEXT), (&call.parameters, Type::TEXT)];
        let mut parameters = Vec::with_capacity(8);
        let sql = match &call.dedupe_key {
            Some(key) => {
                parameters.push((key as &(dyn ToSql + Sync), Type::TEXT));
                parameters.extend(common);
                parameters.push((&call.request_id, Type::TEXT));
                parameters.push((&call.not_before, Type::TIMESTAMPTZ));
                parameters.push((&dedupe_for, Type::FLOAT8));
                parameters.push((&call.retry_failed, Type::BOOL));
                ONCE
            }
            None => {
                parameters.extend(common);
                parameters.push((&call.request_id, Type::TEXT));
                parameters.push((&call.not_before, Type::TIMESTAMPTZ));
                EACH
            }
        };
        let session = self.session(deadline).await.map_err(Failure::Answered)?;
        let asked = timeout_at(deadline, session.query_typed(sql, &parameters)).await;
        let rows = match asked {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                let is_locked = error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
                let failure = if is_locked { Failure::Locked } else { Failure::Answered(refusal(error.into())) };
                if !session.is_closed() {
                    session.give_back();
                }
                return Err(failure);
            }
            Err(_) => return Err(Failure::Answered(Problem::outcome_unknown())),
        };
        session.give_back();
        let read = |row: &Row| -> Result<Enqueued, tokio_postgres::Error> {
            Ok(Enqueued {
                request_id: row.try_get(0)?,
                status: row.try_get(1)?,
                already_sent: row.try_get(2)?,
                repeated: row.try_get(3)?,
            })
        };
        match rows.first().map(read).transpose() {
            Ok(first) => first.ok_or_else(|| Failure::Answered(Problem::outcome_unknown())),
            Err(error) => {
                log(&error.into());
                Err(Failure::Answered(Problem::outcome_unknown()))
            }
        }
    }

    /// The request as it stands, without its parameters and its body.
    pub(super) async fn find(&self, wanted: &WantedRequest, deadline: Instant) -> Result<Option<Value>, Problem> {
        let (condition, value) = match wanted {
            WantedRequest::Id(id) => ("request_id = $1::text::uuid", id),
            WantedRequest::Key(key) => ("dedupe_key = $1 AND holds_key", key),
        };
        let sql = format!("SELECT {COLUMNS} FROM outbox.request WHERE {condition}");
        let session = self.session(deadline).await?;
        let asked = timeout_at(deadline, session.query_typed(&sql, &[(value, Type::TEXT)])).await;
        let failed = |error: Error| {
            log(&error);
            Problem::unavailable("The database cannot be asked now.")
        };
        let rows = asked.map_err(|_| late())?.map_err(|error| failed(error.into()))?;
        session.give_back();
        rows.first().map(document).transpose().map_err(|error| failed(error.into()))
    }

    /// Opens all connections, so that the first callers do not wait for them.
    pub(super) async fn open(&self) {
        let size = self.pool.status().max_size;
        for opened in join_all((0..size).map(|_| database::take(&self.pool))).await {
            if let Err(error) = opened {
                tracing::debug!(%error, "the intake has no connection yet");
            }
        }
    }

    /// A connection; nothing has been sent while there is none.
    async fn session(&self, deadline: Instant) -> Result<Fragile, Problem> {
        // A task of its own: what takes longer to open than one caller has time is there for the next.
        let pool = self.pool.clone();
        let taking = tokio::spawn(async move { database::take(&pool).await });
        match timeout_at(deadline - self.reserve, taking).await {
            Ok(Ok(Ok(loan))) => Ok(Fragile::new(loan)),
            Ok(Ok(Err(error))) => {
                log(&error);
                Err(Problem::unavailable("The database cannot be reached; nothing was recorded."))
            }
            Ok(Err(_)) | Err(_) => Err(late()),
        }
    }
}

fn locked(refused: RefusedCall) -> Problem {
    Problem::unavailable(match refused {
        RefusedCall::Late => "Another transaction holds this dedupe_key or request_id; nothing was recorded.",
        RefusedCall::Full => "Too many calls wait for a dedupe_key or request_id that is in use; nothing was recorded.",
    })
}

fn late() -> Problem {
    Problem::unavailable("No connection to the database became free in time; nothing was recorded.")
}

fn log(error: &Error) {
    tracing::warn!(%error, "the intake cannot use the database");
}

/// The answer to a call that PostgreSQL has not carried out.
fn refusal(error: Error) -> Problem {
    let Error::Statement(cause) = &error else {
        log(&error);
        return Problem::outcome_unknown();
    };
    let Some(said) = cause.as_db_error() else {
        log(&error);
        return Problem::outcome_unknown();
    };
    let detail = [Some(said.message()), said.detail(), said.hint()];
    let detail = detail.into_iter().flatten().collect::<Vec<_>>().join(". ");
    match said.code().code() {
        "OX001" => Problem::unknown_template(detail),
        "OX002" => Problem::conflict(detail),
        "OX004" => Problem::invalid_body(&[Fault { pointer: String::new(), detail }]),
        // A number that is out of numeric's range, an escape that is no character, too deep a nesting.
        code if code.starts_with("22") || code.starts_with("54") => {
            Problem::invalid_body(&[Fault { pointer: "/parameters".to_owned(), detail }])
        }
        // The statement was rolled back, and the session goes on.
        "57014" | "40001" | "40P01" => {
            log(&error);
            Problem::unavailable("The database took too long; nothing was recorded.")
        }
        // The session has ended, before the commit or after it.
        code if ["08", "57", "25", "40"].iter().any(|class| code.starts_with(class)) => {
            log(&error);
            Problem::outcome_unknown()
        }
        _ => {
            log(&error);
            Problem::unavailable("The database has refused it; nothing was recorded.")
        }
    }
}

/// No parameters and no body: they may hold what only the receiver should see, and the asker has them already.
fn document(row: &Row) -> Result<Value, tokio_postgres::Error> {
    let instant = |at: Timestamp| at.to_string();
    let status: String = row.try_get(4)?;
    let mut error = row.try_get::<_, Option<&str>>(11)?.and_then(|error| serde_json::from_str::<Value>(error).ok());
    error.iter_mut().for_each(utc);
    Ok(serde_json::json!({
        "request_id": row.try_get::<_, String>(0)?,
        "dedupe_key": row.try_get::<_, Option<String>>(1)?,
        "user_id": row.try_get::<_, String>(2)?,
        "template": row.try_get::<_, String>(3)?,
        "already_sent": status == "completed",
        "status": status,
        "attempts": row.try_get::<_, i32>(5)?,
        "ambiguous": row.try_get::<_, i32>(6)?,
        "provider_id": row.try_get::<_, Option<String>>(7)?,
        "created_at": instant(row.try_get(8)?),
        "not_before": instant(row.try_get(9)?),
        "completed_at": row.try_get::<_, Option<Timestamp>>(10)?.map(instant),
        "error": error,
    }))
}
