//! The stage: a throw-away PostgreSQL, a broker, an SMS gateway, bookings and their writers, and who watches over them.
//! Used by the verb `demo`, by tests and by benches; the product itself needs nothing of it.

pub mod bookings;
pub mod consumer;
pub mod gateway;
pub mod kafka;
pub mod postgres;
pub mod watchdog;

use crate::position::Timestamp;

/// This machine's clock, which the servers on it share.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_micros(chrono::Utc::now().timestamp_micros())
}
