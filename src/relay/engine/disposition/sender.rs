//! Who sends, with what decides there what follows from a failure.

use crate::relay::{OnPoison, OnUnknown};

/// Who sends, with what decides there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Sender {
    /// A stream, which keeps the order of its rows.
    Stream {
        on_poison: OnPoison,
        /// The refusal is of several rows, one of which is to blame.
        several: bool,
        /// The rows were passed before they were sent (`at_most_once`): none may be sent again that may have been accepted.
        passed: bool,
    },
    /// A stream, with a dead letter that an operator has redriven.
    Redrive {
        /// As [`Sender::Stream`].
        passed: bool,
    },
    /// A queue of pending rows.
    Pending {
        on_poison: OnPoison,
        /// As [`Sender::Stream`].
        several: bool,
        /// The row was marked before it was sent (`at_most_once`): it may not be sent again if it may have been accepted.
        passed: bool,
        /// A `run --once` attempts each row once: the next run begins with the same rows.
        once: bool,
        /// Attempts before this one.
        attempts: i32,
    },
    /// A queue of requests, with idempotency keys.
    Request {
        on_poison: OnPoison,
        on_unknown: OnUnknown,
        /// An attempt before may have been accepted: a refusal of this one does not speak for the request.
        ambiguous_before: bool,
        /// As [`Sender::Pending`].
        once: bool,
        /// Attempts before this one.
        attempts: i32,
    },
    /// A queue of scheduled actions.
    Action {
        /// What has an unknown outcome may be done again.
        retries: bool,
        /// The process ended, or lost its claim, while it was at work.
        interrupted: bool,
        /// Attempts before this one.
        attempts: i32,
    },
}
