//! Compares what a table has with what its topic has, id by id; or, whatever the sink, with what the relay has recorded that it passed
//! ([`passed`]).
//!
//! Promise: an id that differs is named, and an id that is named differs: each is looked at once more by itself before it is
//! reported. Positions are read first, then the table up to them, then the topic's ends, then the topic up to these: what is in
//! flight meanwhile is no difference. Nothing is written, in the database or in the topic. What cannot be read, or be told apart
//! from what retention or compaction has removed, is an error, and never a silent pass.

use std::sync::Arc;
use std::time::Duration;

use crate::database;
use crate::position::Timestamp;
use crate::sink::kafka::Cluster;
use crate::source::shape::Shape;

mod candidates;
mod compare;
pub mod decide;
mod eras;
pub mod history;
mod judge;
pub mod operations;
pub mod order;
pub mod passed;
pub mod record;
pub mod repair;
pub mod report;
mod retained;
mod rows_now;
pub mod sketch;
pub mod topic;

pub use history::Cursors;
pub use passed::Recordings;
pub use report::{Difference, Report};

/// What is compared.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The relay's name, or the table's on trial.
    pub name: String,
    /// The cluster of the topic.
    pub cluster: Arc<Cluster>,
    /// The topics.
    pub topics: topic::Topics,
    /// What to read of records.
    pub reading: record::Reading,
    /// Which records have an order.
    pub keeps: Keeps,
    /// Which have one of those that several cursors send.
    pub shared: Keeps,
    /// The table, once for each cursor that reads a part of it.
    pub parts: Vec<Arc<Shape>>,
    /// Whether the table has an index over `(created_at, id)`.
    pub indexed: bool,
    /// The relay's cursors; none of a publisher on trial.
    pub cursors: Option<Cursors>,
    /// How long a publisher on trial may take for a row.
    pub grace: Duration,
}

/// Which records keep their rows' order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Those of a partition.
    Partition,
    /// Those of a key; of a record without one, those of its partition.
    Key,
    /// None.
    Nothing,
}

/// Which rows, by `created_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From here on.
    pub since: Timestamp,
    /// Before this.
    pub until: Timestamp,
}

impl Range {
    /// Whether rows of this instant are in it.
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        self.since <= at && at < self.until
    }
}

/// Why it could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database's.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// Anything else.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// What keeps it from being compared, and what to do about that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What fixes it; empty when there is nothing to do.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
