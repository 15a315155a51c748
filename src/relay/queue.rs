//! Relays that send their rows individually: due rows (`[relay.source.pending]`), requests, actions of schedules.
//!
//! `runner.rs` is the loop of all three. Each kind has a folder: `claim.rs`, `send.rs` or `execute.rs`, `record.rs`. What they
//! write to the schema `outbox` is in `jobs`.

pub(in crate::relay) mod actions;
mod batch_size;
pub(in crate::relay) mod checked;
pub(in crate::relay) mod due_rows;
pub(in crate::relay) mod failure_tracker;
mod reach;
pub(in crate::relay) mod requests;
mod runner;
mod work;

/// What every kind of prepared relay shows of itself to the checks and to the runner: its fields `seat`, `sink` and `metrics`.
macro_rules! prepared {
    ($name:ident) => {
        impl $crate::relay::queue::checked::Seated for $name {
            fn seat(&self) -> &$crate::relay::setup::prepare::Seat {
                &self.seat
            }
        }

        impl $crate::relay::queue::work::Prepared for $name {
            fn sink(&self) -> &$crate::sink::Sink {
                &self.sink
            }

            fn metrics(&self) -> &$crate::metrics::CursorMetrics {
                &self.metrics
            }
        }
    };
}
use prepared;
