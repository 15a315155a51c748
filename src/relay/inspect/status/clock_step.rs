//! Steps back of the database's clock that an operator has not answered yet.

use std::collections::HashMap;

use serde::Serialize;

use crate::cursor::clock_step;
use crate::database::{Error, Session};

/// A step back of the database's clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockStepStatus {
    /// Nothing that was stamped after it is older.
    pub from: String,
    /// The clock at the last advance before it.
    pub to: String,
}

/// By cursor.
pub(super) async fn all(session: &Session) -> Result<HashMap<String, ClockStepStatus>, Error> {
    let status = |(cursor, step): (String, clock_step::ClockStep)| {
        (cursor, ClockStepStatus { from: step.from.to_string(), to: step.to.to_string() })
    };
    Ok(clock_step::open(session).await?.into_iter().map(status).collect())
}
