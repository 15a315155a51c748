//! `outbox-demo`: the main job of `outbox-relay` on a stage of its own.

use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

use outbox_testkit::{Kafka, Options, Scenario, demo};

/// Run outbox-relay on a throw-away database and broker, kill a replica, and count what arrived
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  outbox-demo
  outbox-demo --seconds 60 --kafka 127.0.0.1:9092
  outbox-demo --scenario reminders --seconds 60 --seed 7
  outbox-demo --scenario requests --seed 7
  outbox-demo --scenario schedules --json
  outbox-demo --scenario lanes --seed 7
  outbox-demo --scenario jobs --seed 7
  outbox-demo --json | tail -n 1 | jq .verdict

Exit codes: 0 pass, 1 fail, 3 undecided (the in-process broker dropped data unseen). \
Nothing is left behind: processes, directories and sockets are removed, also after Ctrl-C."
)]
struct Args {
    /// What is played
    #[arg(long, value_enum, default_value_t)]
    scenario: Scenario,
    /// How long the application writes or asks, or rows become due; of schedules, how long replicas are killed one by one, at
    /// least 12
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Of bookings: a real broker instead of librdkafka's in-process one; `real` starts an Apache Kafka of the demo's own
    #[arg(long, value_name = "HOST:PORT")]
    kafka: Option<Kafka>,
    /// Print the verdict as one line of JSON, as the last line of standard output
    #[arg(long)]
    json: bool,
    /// How many replicas relay; with several, the holder of the Kafka cursor is killed half-way, or any of them now and then
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    replicas: u64,
    /// Decides what is written, due or asked, what fails, and who is killed when
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.scenario != Scenario::Bookings && args.kafka.is_some() {
        let what = "--kafka: only the scenario bookings has a broker";
        Args::command().error(ErrorKind::ArgumentConflict, what).exit();
    }
    play(args).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Sets the stage, runs the demo, and answers its verdict.
#[tokio::main]
async fn play(args: Args) -> anyhow::Result<ExitCode> {
    outbox_relay::telemetry::init(std::env::var("RUST_LOG").ok().as_deref())?;
    let verdict = demo(Options {
        scenario: args.scenario,
        writing: Duration::from_secs(args.seconds),
        kafka: args.kafka.unwrap_or_default(),
        json: args.json,
        replicas: usize::try_from(args.replicas)?,
        seed: args.seed,
    });
    Ok(ExitCode::from(verdict.await?.exit_code()))
}
