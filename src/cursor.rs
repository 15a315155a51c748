//! A cursor: the named, lockable row that owns a position.
//!
//! Promise: only the holder of the row's lock moves the position, in the transaction that locked it, once, and forward;
//! that is what the types say: [`LockedCursor`] owns the connection and its transaction, and advancing consumes it.
//! Operators never need the lock: what they want stands in `outbox.control`, what the relay has to say in
//! `outbox.cursor_status`, and no turn locks either.

pub mod control;
pub mod dead_letter;
mod lock;
mod standing;
mod status;

pub use lock::{Advance, LockedCursor};
pub use standing::{Circuit, Creation, Standing, create, foreign_identity, standings};
pub use status::{ErrorReport, clear, report};

use crate::position::Timestamp;

/// What an operator asked for with `cursor seek`, not yet applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seek {
    /// The request's number; applied once.
    pub number: i64,
    /// Where to; `None` is before every row.
    pub to: Option<crate::position::Position>,
}

fn position(created_at: Option<Timestamp>, id: Option<String>) -> Option<crate::position::Position> {
    created_at.map(|created_at| crate::position::Position { created_at, id })
}
