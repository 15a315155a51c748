//! What the process counts and measures, in Prometheus' form.
//!
//! The names are a contract: they stand in [`table::METRICS`] with unit and description and nowhere else. Labels come
//! from the configuration or from enums, never from rows. A number that is not known is not exported: a counter starts
//! at 0, so that its first step is seen; a gauge appears when it is first set: a 0 that nobody measured would be a lie.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::gauge;

mod audit;
mod cursor;
pub mod exporter;
mod histogram;
pub mod intake;
mod label;
mod lazy;
mod pending;
pub mod process;
mod schedule;
mod stage;
pub mod table;
pub mod trail;

pub use audit::{AuditResult, audit_begins, audited, late_rows};
pub use cursor::CursorMetrics;
pub use exporter::Phases;
pub use label::{Phase, PoolState, PublishError, Stage, TurnResult};
pub use pending::PendingMetrics;
pub use schedule::ScheduleMetrics;
pub use stage::Looked;
use table::name;

/// Sets how many connections to PostgreSQL are in `state`.
pub fn set_pool_connections(state: PoolState, connections: usize) {
    gauge!(name::DB_POOL_CONNECTIONS, "state" => state.as_str()).set(count(connections as u64));
}

/// Sets whether the last attempt to connect to PostgreSQL has succeeded.
pub fn set_postgres_up(up: bool) {
    gauge!(name::POSTGRES_UP).set(f64::from(u8::from(up)));
}

/// Sets how many messages the Kafka client holds, and each broker's round trip.
pub fn set_kafka(queued: u64, round_trips: &BTreeMap<String, Duration>) {
    gauge!(name::KAFKA_QUEUE).set(count(queued));
    for (broker, round_trip) in round_trips {
        gauge!(name::KAFKA_RTT, "broker" => broker.clone()).set(round_trip.as_secs_f64());
    }
}

/// Sets which configuration this replica has of a relay; `is` is false for one that it had before.
pub fn set_config(relay: &str, hash: &str, is: bool) {
    gauge!(name::CONFIG_INFO, "relay" => relay.to_owned(), "hash" => hash.to_owned()).set(f64::from(u8::from(is)));
}

/// Sets whether a relay waits for replicas with another configuration.
pub fn set_config_waits(cursor: &str, waits: bool) {
    gauge!(name::CONFIG_WAITS, "cursor" => cursor.to_owned()).set(f64::from(u8::from(waits)));
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts beyond 2^53 do not occur")]
fn count(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
