//! What a table is compared with.

use std::sync::Arc;
use std::time::Duration;

use crate::database::Session;
use crate::verify::topic::Watch;
use crate::verify::{Error, Range, Recordings, Report, Subject};

/// What a table is compared with.
pub(super) enum Side {
    /// A topic.
    Topic(Box<Subject>),
    /// What the relay's cursors have recorded.
    Recorded(Box<Recordings>),
}

impl Side {
    /// The relay's name, or the table's on trial.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Topic(subject) => &subject.name,
            Self::Recorded(recordings) => &recordings.cursors.relay,
        }
    }

    /// How young rows are not compared.
    pub(super) fn grace(&self) -> Duration {
        match self {
            Self::Topic(subject) => subject.grace,
            Self::Recorded(_) => Duration::ZERO,
        }
    }

    pub(super) async fn compare(&self, session: &Session, range: Range, watch: &Arc<Watch>) -> Result<Report, Error> {
        match self {
            Self::Topic(subject) => subject.compare(session, range, watch).await,
            Self::Recorded(recordings) => recordings.compare(session, range, watch).await,
        }
    }
}
