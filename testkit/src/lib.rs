//! The demo, in six scenarios. Bookings: three replicas relay bookings to Kafka and SMS, one of them is killed, and
//! what arrived is compared with what was committed. Reminders: three replicas send due work to a provider that fails,
//! hangs and answers late, replicas are killed again and again, and what the provider has is compared with what was due.
//! Requests: many callers ask for the same, the replicas fare the same, and what two providers have, one that honours
//! idempotency keys and one that does not, is compared with the ledger. Schedules: what several tenants have scheduled is
//! edited and deleted, replicas fare the same and are all gone for some seconds, and what the tenants' endpoints received is
//! compared with instants that were counted beforehand. Lanes: three relays send the same messages side by side, one number is refused
//! for a while, and what halt, dead letters and parked keys make of it is compared at the provider. Jobs: pending rows and requests in
//! lanes, beside rows that are sent each on their own, and the order of each number is compared at the provider.
//!
//! Its stage (a throw-away PostgreSQL, a broker, an SMS gateway, a provider, bookings and their writers) is also that of
//! tests and benches; the product itself needs nothing of it. Whatever ends the demo, nothing of it stays behind.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

use self::scene::Scene;
use self::view::View;
use crate::delivery::Verdict;
pub use outbox_relay::notation::hex;
use outbox_relay::position::Timestamp;

pub mod bookings;
pub mod consumer;
pub mod delivery;
pub mod gateway;
pub mod kafka;
pub mod order;
pub mod postgres;
pub mod provider;
pub mod registry;
pub mod smtp;
pub mod startup;
pub mod wait;
pub mod watchdog;

mod database;
mod due;
mod faults;
mod jobs;
mod kills;
mod lanes;
mod look;
mod play;
mod replicas;
mod requests;
mod sample;
mod scene;
mod schedules;
mod summary;
mod table_scene;
mod takeover;
mod throttle;
mod verified;
mod view;

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is played.
    pub scenario: Scenario,
    /// How long the application writes or asks, or rows become due; of schedules, how long replicas are killed one by one.
    pub writing: Duration,
    /// Which broker; only bookings need one.
    pub kafka: Kafka,
    /// Whether the last line of standard output is the verdict as JSON.
    pub json: bool,
    /// How many processes relay; some are killed, when there are several.
    pub replicas: usize,
    /// Decides what the writers write; of the other scenarios, what is due or asked when, what fails, and who is killed.
    pub seed: u64,
}

/// What is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// A stream of bookings to Kafka and SMS
    #[default]
    Bookings,
    /// Due work: reminders, at least once, and welcome messages, at most once
    Reminders,
    /// Requests that many ask for and that are sent once: mails with idempotency keys, texts without
    Requests,
    /// Schedules of several tenants: edits, kills, an endpoint that hangs, and seconds without any replica
    Schedules,
    /// Messages side by side, and one number that is refused: halt, dead letters and parked keys beside each other
    Lanes,
    /// Pending rows and requests in lanes: each number gets its messages in order, beside rows that are sent each on their own
    Jobs,
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
        let writing = Duration::from_secs(20);
        Self { scenario: Scenario::default(), writing, kafka: Kafka::default(), json: false, replicas: 3, seed: 1 }
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

/// What a scenario is played on. Dropped, it is gone, too; clearing it says whether it is.
trait Stage: Sized {
    /// What stands above the view.
    fn title(options: &Options) -> String;
    /// Starts everything, the replicas too.
    async fn set(options: &Options, view: &mut View) -> anyhow::Result<Self>;
    /// Everything between the stage's setting and its clearing; the verdict goes to standard output.
    async fn play(&mut self, options: &Options, view: &mut View) -> anyhow::Result<Verdict>;
    /// Clears it and waits for that.
    async fn clear(self) -> anyhow::Result<()>;
}

/// Sets the stage, lets it play, prints the verdict, and clears the stage. SIGINT and SIGTERM end it early, undecided.
///
/// # Errors
/// When the stage cannot be set, or the relays do not start.
pub async fn demo(options: Options) -> anyhow::Result<Verdict> {
    match options.scenario {
        Scenario::Bookings => perform::<Scene>(options).await,
        Scenario::Reminders => perform::<due::Scene>(options).await,
        Scenario::Requests => perform::<requests::Scene>(options).await,
        Scenario::Schedules => perform::<schedules::Scene>(options).await,
        Scenario::Lanes => perform::<lanes::Scene>(options).await,
        Scenario::Jobs => perform::<jobs::Scene>(options).await,
    }
}

async fn perform<S: Stage>(options: Options) -> anyhow::Result<Verdict> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("Cannot watch for signals")?;
    let mut view = View::new(S::title(&options), options.writing);
    let set = tokio::select! {
        set = S::set(&options, &mut view) => Some(set?),
        _ = signals.next() => None,
    };
    let Some(mut stage) = set else { return Ok(interrupted()) };
    let played = tokio::select! {
        played = stage.play(&options, &mut view) => Some(played),
        _ = signals.next() => None,
    };
    // A second signal is in a hurry: what is dropped is removed as well, but a topic on somebody else's broker stays.
    let cleared = tokio::select! {
        cleared = stage.clear() => cleared,
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
