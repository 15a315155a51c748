//! Actions of schedules that are running.

use serde::Serialize;

use crate::database::{Error, Session};
use crate::jobs::journal::{self, ActionSummary};

/// So many are told of: a document that is asked for every two seconds stays small.
pub const MOST: usize = 100;

/// An action that is running.
#[derive(Debug, Serialize)]
pub struct RunningAction {
    /// Its id.
    pub key: [String; 1],
    /// The relay that carries it out.
    pub relay: String,
    /// Its schedule's name.
    pub schedule: String,
    /// Whose it is; empty is nobody's.
    pub tenant: String,
    /// When it was begun.
    pub started_at: Option<String>,
    /// For how long it has been running.
    pub running_seconds: f64,
    /// How long it may run.
    pub timeout_seconds: f64,
    /// What its command said last.
    pub progress: Option<String>,
    /// The replica that has it.
    pub by: Option<String>,
}

/// What is running, the longest first, at most [`MOST`].
pub(super) async fn running(session: &Session) -> Result<Vec<RunningAction>, Error> {
    let found = journal::running(session, i64::try_from(MOST).unwrap_or(i64::MAX)).await?;
    Ok(found.into_iter().map(RunningAction::from).collect())
}

impl From<ActionSummary> for RunningAction {
    fn from(action: ActionSummary) -> Self {
        Self {
            key: [action.id.to_string()],
            relay: action.relay,
            schedule: action.schedule,
            tenant: action.tenant,
            started_at: action.started_at.map(|at| at.to_string()),
            running_seconds: action.took.unwrap_or(0.0).max(0.0),
            timeout_seconds: action.timeout,
            progress: action.progress,
            by: action.by,
        }
    }
}
