//! Moves rows that an application committed in PostgreSQL to Kafka, HTTP, SMS and email, and to **sinks of your own**: in order,
//! without loss, from any number of replicas.
//!
//! Most users run the program `outbox-relay` and never see this library. Use it to add a sink: write a type that implements
//! [`CustomSink`], register it with a [`Program`], and your binary has the whole command line (`run`, `check`, `migrate`,
//! `status`, `cursor`, …) with your sink beside the built-in ones.
//!
//! ```
//! use std::time::Instant;
//!
//! use outbox_relay::{CustomSink, Delivery, Description, Environment, Program, Stopped, async_trait};
//!
//! /// Prints each row: `[relay.sink.custom] kind = "printer"`, with keys of its own.
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Printer {
//!     prefix: String,
//! }
//!
//! #[async_trait]
//! impl CustomSink for Printer {
//!     fn description(&self) -> Description {
//!         Description::in_batches("the terminal")
//!     }
//!
//!     async fn publish(&self, messages: &[Delivery<'_>], _deadline: Instant) -> Result<(), Stopped> {
//!         for message in messages {
//!             let row = String::from_utf8_lossy(message.value(0).unwrap_or_default());
//!             println!("{} {} {row}", self.prefix, message.idempotency_key());
//!         }
//!         Ok(()) // all of them have arrived
//!     }
//! }
//!
//! let program = Program::new().sink("printer", |table| table.parse::<Printer>());
//!
//! // Your `main` ends with `program.run()`. Here its configuration is only read:
//! let config = r#"
//!     [postgres]
//!     url = "postgresql://relay@127.0.0.1:5432/app"
//!
//!     [[relay]]
//!     name = "bookings"
//!     start = "now"
//!     [relay.source.stream]
//!     table = "public.bookings"
//!     [relay.sink.custom]
//!     kind = "printer"
//!     prefix = ">"
//! "#;
//! let config = program.parse(config, "relay.toml", &Environment::new())?;
//! assert_eq!(config.relays[0].name, "bookings");
//!
//! // What is wrong is told with its line, its key and what to write instead.
//! let wrong = "[[relay]]\nname = \"bookings\"\n[relay.sink.custom]\nkind = \"printr\"\n";
//! let problems = program.parse(wrong, "relay.toml", &Environment::new()).unwrap_err();
//! assert!(problems.to_string().contains("did you mean \"printer\"?"));
//! # Ok::<(), outbox_relay::Problems>(())
//! ```
//!
//! # What the relay does around your sink
//!
//! - It reads only rows that are safe to read, in the order of `(created_at, id)`, and one replica at a time publishes a relay's
//!   rows. When a replica ends, however it does, another goes on behind the last row whose delivery was recorded.
//! - It calls [`CustomSink::publish`] again for what was not accepted, with the same
//!   [idempotency key](Delivery::idempotency_key). A [`Failure`] says what follows: [`Class::Retry`] opens the circuit and is
//!   tried indefinitely (unless it is [about the message](Subject::Message)), [`Class::Poison`] halts the relay or becomes a dead letter, [`Class::Fatal`] halts it until an operator has
//!   fixed what is wrong.
//! - Guarantees are `at_least_once` and `at_most_once`; sources are streams, due work, requests and schedules. `in_database` is
//!   refused: only the built-in `sql` sink takes part in the database's transaction.
//!
//! `docs/howto/own-sink.md` walks through a sink in a crate of its own (`examples/own-sink`), with its tests.
//!
//! # Where to go on
//!
//! | | |
//! |---|---|
//! | a program | [`Program`] |
//! | a configuration | [`Config`], [`Environment`], [`Problems`] |
//! | a sink | [`CustomSink`], [`Description`], [`Field`], [`Table`], [`InvalidSetting`] |
//! | what a sink is given | [`Delivery`], [`Message`], [`Timestamp`] |
//! | what a sink answers | [`Stopped`], [`Failure`], [`Class`], [`Subject`] |

// Imports point one way: pure (position, message, batch, pace, schedule) ← infrastructure (database, metrics, health, listener,
// telemetry, shutdown, migrate) ← cursor ← jobs, source, sink ← relay ← retention, verify, admin, intake ← config ← cli ← program.
// A test holds the code to it. Reading order is the data's way: source → message, batch → sink → cursor; relay ties them into turns.
// `docs/ARCHITECTURE.md` begins with a table of where each step is.
//
// Modules are public because tests, benches and the test kit stand outside of this crate, and hidden because they change with
// any version: what is promised is what stands under "the front door".

#[doc(hidden)]
pub mod admin;
#[doc(hidden)]
pub mod audit;
#[doc(hidden)]
pub mod batch;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod cursor;
#[doc(hidden)]
pub mod database;
#[doc(hidden)]
pub mod file;
#[cfg(test)]
mod garbled;
#[doc(hidden)]
pub mod health;
#[doc(hidden)]
pub mod intake;
#[doc(hidden)]
pub mod jobs;
#[doc(hidden)]
pub mod late;
#[doc(hidden)]
pub mod listener;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
pub mod metrics;
#[doc(hidden)]
pub mod migrate;
#[doc(hidden)]
pub mod notation;
#[doc(hidden)]
pub mod pace;
#[doc(hidden)]
pub mod position;
mod program;
#[doc(hidden)]
pub mod relay;
#[doc(hidden)]
pub mod retention;
mod retry_after;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod secret;
#[doc(hidden)]
pub mod shutdown;
#[doc(hidden)]
pub mod sink;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod telemetry;
mod tls;
#[doc(hidden)]
pub mod tokens;
#[doc(hidden)]
pub mod verify;
#[doc(hidden)]
pub mod visible;

// The front door.
pub use async_trait::async_trait;
pub use config::{Config, Environment, Place, Problem, Problems};
pub use message::{Field, Message};
pub use position::Timestamp;
pub use program::Program;
pub use sink::custom::{CustomSink, Delivery, Description, Stopped, Table};
pub use sink::{Class, Failure, InvalidSetting, Subject};

/// Everything that links this library allocates by jemalloc, librdkafka too: a row is a dozen allocations, most of which end on
/// another thread than the one that made them.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
