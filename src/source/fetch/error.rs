//! Why rows may not be read.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::unreadable::Unreadable;
use crate::database::{Error, sqlstate};

/// Why nothing may be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The database said no.
    #[error(transparent)]
    Database(#[from] Error),
    /// The relations differ from those that the horizon was computed for, or the columns from those that the sink or the
    /// statements were made for: look at the catalog again.
    #[error("the table's partitions, or its columns, have changed since the scan")]
    FamilyChanged,
    /// The turn was over before a row was read.
    #[error("PostgreSQL has not read a row within {0:?} (turn.deadline)")]
    Late(Duration),
    /// A row cannot be read; all rows before it were handed over.
    #[error(transparent)]
    Unreadable(Unreadable),
    /// The name means another table now.
    #[error(
        "table {table} is another relation now ({}, was oid {known}): it was replaced or renamed. Rename it back, \
         or accept the new one: its rows after the cursor's position will be published",
        .found.map_or_else(|| "none".to_owned(), |oid| format!("oid {oid}"))
    )]
    Replaced {
        /// The configured name.
        table: String,
        /// What it means now.
        found: Option<u32>,
        /// What it meant.
        known: u32,
    },
    /// A partition was attached with rows that the cursor has passed already.
    #[error(
        "partition {partition} was attached to {table} with rows at or below the cursor's position {position}: they \
         would never be published. Publish them by hand or move the position back, then resume"
    )]
    AttachedBehind {
        /// The configured table.
        table: String,
        /// The new partition.
        partition: String,
        /// The cursor's position.
        position: String,
    },
    /// A partition with rows that the cursor has not passed was detached, or is being detached.
    #[error(
        "{partition} is no part of {table} any more, or is being detached: its rows after the cursor's position {position} would be left \
         out, and {why}"
    )]
    Away {
        /// The configured table.
        table: String,
        /// What was its partition, or inherited from it.
        partition: String,
        /// The cursor's position.
        position: String,
        /// Whether there are such rows.
        why: String,
        /// What an administrator can do.
        fix: String,
    },
    /// A partition of the ready-made outbox with rows that the cursor has not passed is detached, or is being detached.
    #[error(
        "partition {partition} of {table} is detached, and reaches behind the cursor's position {position}: its rows \
         cannot be read, and would be left out"
    )]
    Detached {
        /// The configured table.
        table: String,
        /// The partition.
        partition: String,
        /// The cursor's position.
        position: String,
    },
}

impl FetchError {
    /// Whether it may be about one row, so that those before it need not wait.
    #[must_use]
    pub fn is_of_a_row(&self) -> bool {
        matches!(self, Self::Unreadable(_)) || self.is_too_slow()
    }

    /// Whether a reading has ended because it took too long.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        match self {
            Self::Late(_) => true,
            Self::Database(error) => sqlstate::is_too_slow(error),
            _ => false,
        }
    }
}

/// Where PostgreSQL says that a prepared statement would have other columns now.
const REVALIDATED: &str = "RevalidateCachedQuery";

impl From<tokio_postgres::Error> for FetchError {
    fn from(error: tokio_postgres::Error) -> Self {
        // Its words depend on the server's language.
        let other_columns = error
            .as_db_error()
            .is_some_and(|said| *said.code() == SqlState::FEATURE_NOT_SUPPORTED && said.routine() == Some(REVALIDATED));
        if other_columns { Self::FamilyChanged } else { Self::Database(error.into()) }
    }
}
