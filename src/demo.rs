//! The stage: a throw-away PostgreSQL, a broker, an SMS gateway, bookings and their writers, and who watches over them.
//! Used by the verb `demo`, by tests and by benches; the product itself needs nothing of it.

pub mod kafka;
pub mod postgres;
pub mod watchdog;
