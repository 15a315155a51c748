//! The verb `demo`: three replicas relay bookings to Kafka and SMS, one of them is killed, and what arrived is compared
//! with what was committed.
//!
//! Its stage (a throw-away PostgreSQL, a broker, an SMS gateway, bookings and their writers) is also that of tests and
//! benches; the product itself needs nothing of it. Whatever ends the demo, nothing of it stays behind.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

use self::scene::Scene;
use self::view::View;
use crate::delivery::Verdict;
use crate::position::Timestamp;

pub mod bookings;
pub mod consumer;
pub mod gateway;
pub mod kafka;
pub mod postgres;
pub mod startup;
pub mod watchdog;

mod play;
mod replicas;
mod sample;
mod scene;
mod summary;
mod takeover;
mod throttle;
mod view;

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long the application writes.
    pub writing: Duration,
    /// Which broker.
    pub kafka: Kafka,
    /// Whether the last line of standard output is the verdict as JSON.
    pub json: bool,
    /// How many processes relay; one of them is killed half-way, when there are several.
    pub replicas: usize,
    /// Decides what the writers write.
    pub seed: u64,
}

/// Which broker the demo uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kafka {
    /// librdkafka's, inside this process.
    #[default]
    InProcess,
    /// An Apache Kafka of the demo's own; needs Java and its jars.
    Own,
    /// One that is there, as `host:port`; the demo makes a topic and deletes it.
    At(String),
}

impl Default for Options {
    fn default() -> Self {
        Self { writing: Duration::from_secs(20), kafka: Kafka::default(), json: false, replicas: 3, seed: 1 }
    }
}

impl FromStr for Kafka {
    type Err = String;

    /// `real`, or `host:port`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            _ if text == "real" => Ok(Self::Own),
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Self::At(text.to_owned())),
            Some(_) | None => Err("write HOST:PORT, or `real` for a broker of the demo's own".to_owned()),
        }
    }
}

/// Sets the stage, lets it play, prints the verdict, and clears the stage. SIGINT and SIGTERM end it early, undecided.
///
/// # Errors
/// When the stage cannot be set, or the relays do not start.
pub async fn demo(options: Options) -> anyhow::Result<Verdict> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("Cannot watch for signals")?;
    let mut view = View::new(&options);
    let set = tokio::select! {
        set = Scene::set(&options.kafka, options.replicas, &mut view) => Some(set?),
        _ = signals.next() => None,
    };
    let Some(mut scene) = set else { return Ok(interrupted()) };
    let played = tokio::select! {
        played = play::play(&options, &mut scene, &mut view) => Some(played),
        _ = signals.next() => None,
    };
    // A second signal is in a hurry: what is dropped is removed as well, but a topic on somebody else's broker stays.
    let cleared = tokio::select! {
        cleared = scene.clear() => cleared,
        _ = signals.next() => Ok(()),
    };
    let Some(verdict) = played else { return Ok(interrupted()) };
    let verdict = verdict?;
    cleared.map(|()| verdict)
}

fn interrupted() -> Verdict {
    eprintln!("Interrupted: no verdict; everything is removed.");
    Verdict::Undecided
}

/// This machine's clock, which the servers on it share.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_micros(chrono::Utc::now().timestamp_micros())
}
