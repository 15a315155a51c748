//! What replicas claim and send one by one, as rows of the schema `outbox`: due rows, requests, actions of schedules.
//!
//! Each kind has its statements here, without a sink and without a loop: [`due_rows`] (`outbox.claim`), [`ledger`]
//! (`outbox.request`), [`actions`] (`outbox.action`, made by [`schedules`], which [`watches`] observe). [`Settlement`] is the
//! transaction that records what became of claims. What operators see and do of them is in [`requests`], [`discard`],
//! [`journal`] and [`timetable`]. `relay/queue` is the loop that claims and sends.

use crate::database::{Error, Session};

pub mod actions;
pub mod discard;
pub mod due_rows;
pub mod journal;
pub mod ledger;
pub mod requests;
pub mod schedules;
mod settlement;
pub mod timetable;
pub mod watches;

pub use settlement::Settlement;

const WAITING: &str = include_str!("jobs/sql/jobs_waiting.sql");

/// How many rows of a relay wait after a failure, in how many seconds the first of them is retried, and the code of its
/// failure; none when none waits.
///
/// # Errors
/// The database's.
pub async fn waiting(session: &Session, relay: &str) -> Result<Option<(i64, f64, String)>, Error> {
    let Some(row) = session.query_opt(WAITING, &[&relay]).await? else { return Ok(None) };
    Ok(Some((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
}
