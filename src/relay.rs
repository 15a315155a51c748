//! The engine: a relay moves the rows of one source to one sink through its cursor.
//!
//! Rooms, each of which imports those before it only: `config` ← [`engine`] ← [`setup`] ← [`stream`] and `queue` ←
//! [`inspect`]. A test holds the code to it. [`supervisor`] runs all of them, [`once`] runs them until nothing is left.

mod config;
pub mod engine;
pub mod inspect;
pub mod once;
mod queue;
pub mod setup;
pub mod stream;
pub mod supervisor;

pub use self::stream::auditor::run as audit;

pub use self::config::{
    Audit, Config, Guarantee, Lanes, OnConfigChange, OnLateRow, OnPoison, OnUnknown, Parking, Start, TurnConfig,
    Unaudited,
};
