//! Steps back of the database's clock that no operator has answered yet.

use std::collections::HashMap;

use serde::Serialize;

use crate::cursor::clock_step;
use crate::database::{Error, Session};

/// A step back of the database's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClockStepStatus {
    /// No later than the clock right after it; none where no replica knows.
    pub from: Option<String>,
    /// The clock at the last advance before it.
    pub to: String,
}

impl ClockStepStatus {
    /// Which rows may not have been delivered, by their `created_at`.
    #[must_use]
    pub fn between(&self) -> String {
        let to = &self.to;
        match &self.from {
            Some(from) => format!("between {from} and {to}"),
            None => format!("before {to} (no replica ran when the clock was set: since when is unknown)"),
        }
    }
}

/// By cursor.
pub(super) async fn all(session: &Session) -> Result<HashMap<String, ClockStepStatus>, Error> {
    let status = |(cursor, step): (String, clock_step::ClockStep)| {
        (cursor, ClockStepStatus { from: step.from.map(|from| from.to_string()), to: step.to.to_string() })
    };
    Ok(clock_step::open(session).await?.into_iter().map(status).collect())
}
