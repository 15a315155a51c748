//! What the relay costs beside the raw limits of the machine it runs on: `make bench`, `make bench ARGS=--help`.
//!
//! One run, one throw-away PostgreSQL with fsync, one Apache Kafka broker at full speed. Rounds are interleaved, so that
//! whatever disturbs the machine disturbs all kinds alike; a figure is the median of the rounds. For the
//! parts of a whole run the broker is warmed up first, and what has been written before is on the disk when a rate or a
//! latency is measured: a compiling Java and a disk busy with older data take time of the two cores, and of each commit.

/// The parts.
#[allow(unreachable_pub, reason = "a program: `pub` says what a module offers the others")]
mod relay {
    pub mod ask;
    pub mod audit;
    pub mod audit_load;
    pub mod backlog;
    pub mod claim;
    pub mod compare;
    pub mod dead;
    pub mod delay;
    pub mod document;
    pub mod drain;
    pub mod figure;
    pub mod formats;
    pub mod idle;
    pub mod lanes;
    pub mod lanes_jobs;
    pub mod latency;
    pub mod machine;
    pub mod many;
    pub mod many_busy;
    pub mod options;
    pub mod page;
    pub mod parked;
    pub mod parked_latency;
    pub mod parts;
    pub mod payload;
    pub mod plot;
    pub mod primary_load;
    pub mod process;
    pub mod produce;
    pub mod proxy;
    pub mod rates;
    pub mod read;
    pub mod read_model;
    pub mod repeats;
    pub mod report;
    pub mod rules;
    pub mod schedules;
    pub mod sequential;
    pub mod shards;
    pub mod shown;
    pub mod spent;
    pub mod stage;
    pub mod summary;
    pub mod tail;
    pub mod takeover;
    pub mod telemetry_load;
    pub mod verify;
    pub mod wake;
    pub mod watch;
    pub mod writer;
}

use std::time::Duration;

use anyhow::Context as _;
use relay::machine::Machine;
use relay::options::Options;
use relay::stage::Stage;
use relay::{document, parts};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Some(options) = Options::from_args(std::env::args().skip(1))? else { return Ok(()) };
    if options.draws_only() {
        return document::draw();
    }
    options.say("starting PostgreSQL and Apache Kafka");
    let stage = Stage::start().await.context("the stage")?;
    // A signal must not leave a relay behind: dropping what measures kills what it has started.
    let stop = CancellationToken::new();
    outbox_relay::shutdown::watch(stop.clone(), CancellationToken::new(), Duration::ZERO)?;
    let measured = tokio::select! {
        report = parts::measure(&stage, &options) => Ok(report),
        () = stop.cancelled() => Err(anyhow::anyhow!("told to stop")),
    };
    let machine = Machine::look(&stage).await;
    stage.stop().await?;
    document::write(&machine?, &measured?, options.is_whole())
}
