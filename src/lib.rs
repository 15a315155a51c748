//! Moves rows that an application committed in PostgreSQL to Kafka, SMS, e-mail and HTTP: in order, without loss, from any
//! number of replicas.
//!
//! Reading order is the data's way: rows ([`source`]) → messages ([`message`], [`batch`]) → [`sink`] → [`cursor`];
//! [`relay`] is the engine that ties them into turns, [`retention`] takes away what is done with.
//!
//! Imports point one way: pure ([`position`], [`message`], [`batch`], [`pace`], [`schedule`]) ← infrastructure ([`database`],
//! [`metrics`], [`health`], [`listener`], [`telemetry`], [`shutdown`], [`migrate`]) ← [`cursor`], [`source`], [`sink`] ←
//! [`relay`] ← [`retention`], [`admin`], [`intake`] ← [`config`] ← [`cli`]. A test holds the code to it.

pub mod admin;
pub mod batch;
pub mod cli;
pub mod config;
pub mod cursor;
pub mod database;
#[cfg(test)]
mod garbled;
pub mod health;
pub mod intake;
pub mod listener;
pub mod message;
pub mod metrics;
pub mod migrate;
pub mod pace;
pub mod position;
pub mod relay;
pub mod retention;
pub mod schedule;
pub mod secret;
pub mod shutdown;
pub mod sink;
pub mod source;
pub mod telemetry;
pub mod visible;

/// Everything that links this library allocates by jemalloc, librdkafka too: a row is a dozen allocations, most of which end on
/// another thread than the one that made them.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
