//! A cursor: the named, lockable row that owns a position.
//!
//! Promise: only the holder of the row's lock moves the position, in the transaction that locked it, once, and forward
//! unless an operator wants otherwise; that is what the types say: [`LockedCursor`] owns the connection and its
//! transaction, and advancing consumes it. Operators never need the lock: what they want stands in `outbox.control`, what
//! the relay has to say in `outbox.cursor_status`, and no turn that publishes locks either.

pub(crate) mod advance;
mod again;
pub mod ahead;
mod attention;
pub mod audit_slices;
mod change;
pub mod clock_step;
mod commit;
pub mod control;
pub mod dead_letter;
mod detail;
pub mod letters;
pub mod liveness;
mod lock;
mod news;
pub mod open_work;
mod order;
pub mod parked;
pub mod relay;
pub mod replicas;
mod reserve;
pub mod reshard;
mod rule;
pub mod settle;
pub mod shards;
mod standing;
pub(crate) mod status;
mod taking;
pub mod turn_progress;
pub mod unknown;

pub use advance::Advance;
pub use again::create_again;
pub use attention::{Attention, attention};
pub use change::{Adoption, CursorChange, RelayFacts, Sweeping};
pub use clock_step::ClockStep;
pub use commit::{Commit, fate_of};
pub use detail::{Detail, detail, details};
pub use lock::{LockedCursor, RestsOn, RowPlace};
pub use news::news;
pub use order::{Fate, Order, fate, has_moved_to, order};
pub use reserve::{InFlight, Reservation, Reserved, ReservedEnd, Reserving};
pub use rule::Halting;
pub use standing::{Circuit, Creation, Standing, create, foreign_identity, standings};
pub use status::{CHECK, ErrorReport, Halt, HaltScope, clear, halt, report, rest};
pub use taking::Taking;

use crate::position::Timestamp;

fn position(created_at: Option<Timestamp>, id: Option<String>) -> Option<crate::position::Position> {
    created_at.map(|created_at| crate::position::Position { created_at, id })
}
