//! Retention: what is done with is taken away after its configured time.
//!
//! Promise: nothing that somebody still needs is pruned. What keeps a row or a partition is asked in the same statement
//! that takes it away, never remembered; what is in doubt stays. Nothing is pruned unless its time is configured.
//!
//! One pass at a time goes through a database, whichever replica or operator makes it. Its statements are small, wait for
//! no lock, and run on a session of their own, so that no turn waits for them.

use std::time::Duration;

mod actions;
mod letters;
mod marks;
mod messages;
mod pass;
mod requests;
pub mod task;

pub use pass::{Pass, look, note, patient, prune};

/// `[retention]` of the configuration. A time that is absent keeps indefinitely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long completed requests are kept.
    pub completed_requests: Option<Duration>,
    /// How long marks in `outbox.sent` are kept whose row is gone.
    pub sent_marks: Option<Duration>,
    /// How long dead letters are kept that were redriven or discarded.
    pub dead_letters: Option<Duration>,
    /// How long actions of schedules are kept that have ended.
    pub actions: Option<Duration>,
    /// How long partitions of `outbox.message` are kept after their last day.
    pub messages: Option<Duration>,
    /// For how many days ahead its partitions are made.
    pub messages_ahead: i32,
    /// How often `run` looks.
    pub every: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            completed_requests: None,
            sent_marks: None,
            dead_letters: None,
            actions: None,
            messages: None,
            messages_ahead: 3,
            every: Duration::from_secs(600),
        }
    }
}

/// What is pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Completed requests.
    Requests,
    /// Marks of a relay of due work.
    SentMarks,
    /// Resolved dead letters.
    DeadLetters,
    /// Actions of schedules that have ended.
    Actions,
    /// Partitions of `outbox.message`.
    Messages,
}

impl What {
    /// The word in documents: the key of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "completed_requests",
            Self::SentMarks => "sent_marks",
            Self::DeadLetters => "dead_letters",
            Self::Actions => "actions",
            Self::Messages => "messages",
        }
    }
}

/// What was found of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRecords {
    /// Of which kind.
    pub what: What,
    /// Where: a table, a relay, or a partition.
    pub of: String,
    /// How many rows may go, or have gone; of partitions, 1.
    pub rows: i64,
    /// What is old enough and stays, and why.
    pub kept: Vec<Kept>,
}

/// What stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How many rows; none when that was not counted.
    pub rows: Option<i64>,
    /// Who or what holds them.
    pub held_by: String,
    /// It was tried, and failed.
    pub failed: bool,
}

impl Kept {
    /// So many rows, unless there are none.
    fn some(rows: i64, held_by: &str) -> Option<Self> {
        (rows > 0).then(|| Self { rows: Some(rows), held_by: held_by.to_owned(), failed: false })
    }

    /// What cannot be judged.
    fn all(held_by: String) -> Self {
        Self { rows: None, held_by, failed: false }
    }
}
