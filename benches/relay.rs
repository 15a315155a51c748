//! What the relay costs beside the raw limits of the machine it runs on: `make bench`.
//!
//! One run, one throw-away PostgreSQL with fsync, one Apache Kafka broker. The rounds are interleaved, so that whatever
//! disturbs the machine disturbs all kinds alike; a figure is the median of the rounds. `--quick` makes a small run.

/// The parts.
#[allow(unreachable_pub, reason = "a program: `pub` says what a module offers the others")]
mod relay {
    pub mod ask;
    pub mod claim;
    pub mod drain;
    pub mod figure;
    pub mod idle;
    pub mod latency;
    pub mod machine;
    pub mod options;
    pub mod payload;
    pub mod process;
    pub mod produce;
    pub mod read;
    pub mod read_model;
    pub mod report;
    pub mod rules;
    pub mod schedules;
    pub mod sequential;
    pub mod stage;
    pub mod tail;
    pub mod takeover;
    pub mod wake;
    pub mod writer;
}

use std::time::Duration;

use anyhow::Context as _;
use relay::figure::Figures;
use relay::machine::Machine;
use relay::options::Options;
use relay::payload::Payload;
use relay::stage::Stage;
use relay::{
    ask, claim, drain, idle, latency, produce, read, read_model, report, rules, schedules, sequential, takeover, wake,
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::from_args(std::env::args().skip(1))?;
    let stage = Stage::start().await.context("the stage")?;
    // A signal must not leave a relay behind: dropping what measures kills what it has started.
    let stop = CancellationToken::new();
    outbox_relay::shutdown::watch(stop.clone(), CancellationToken::new(), Duration::ZERO)?;
    let measured = tokio::select! {
        measured = measure(&stage, &options) => measured,
        () = stop.cancelled() => Err(anyhow::anyhow!("told to stop")),
    };
    let machine = Machine::look(&stage).await;
    stage.stop().await?;
    report::write(&machine?, &measured?)
}

/// Runs all that is asked for.
async fn measure(stage: &Stage, options: &Options) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    if options.wants("rates") {
        for payload in Payload::ALL {
            options.say(&format!("filling {} rows ({})", options.rows(payload), payload.name()));
            stage.fill(payload, options.rows(payload)).await?;
        }
        for round in 1..=options.rounds {
            rates(stage, options, round, &mut figures).await.with_context(|| format!("round {round}"))?;
        }
    }
    if options.wants("latency") {
        for round in 1..=options.rounds {
            options.say(&format!("latency {round}/{}", options.rounds));
            figures.latency.push(latency::measure(stage, options, round).await.context("latency")?);
        }
    }
    if options.wants("takeover") {
        options.say("takeover");
        figures.takeover = takeover::measure(stage, options).await.context("takeover")?;
    }
    if options.wants("pending") {
        pending(stage, options, &mut figures).await?;
    }
    if options.wants("sql") {
        figures.models = read_model::KINDS.map(|kind| read_model::Models::of(kind, options.models)).into();
        for round in 1..=options.rounds {
            for models in &mut figures.models {
                options.say(&format!("sql {round}/{}, {} by {}", options.rounds, models.kind.model, models.kind.each));
                models.measure(stage, round).await.context("sql_sink")?;
            }
        }
    }
    if options.wants("intake") {
        for round in 1..=options.rounds {
            options.say(&format!("ledger and intake {round}/{}", options.rounds));
            figures.asked.push(ask::measure(stage, options.calls).await?);
        }
    }
    if options.wants("rules") {
        for round in 1..=options.rounds {
            options.say(&format!("rules {round}/{}", options.rounds));
            figures.rules.push(rules::measure(options.computations)?);
        }
    }
    if options.wants("schedules") {
        options.say(&format!("schedules, {} s", options.schedule_seconds));
        figures.schedules = Some(schedules::measure(stage, options).await.context("schedules")?);
    }
    if options.wants("idle") {
        options.say("idle");
        figures.idle = Some(idle::measure(stage, options).await.context("idle")?);
    }
    Ok(figures)
}

/// Due work: claims by one replica and by three, and how late single rows are.
async fn pending(stage: &Stage, options: &Options, figures: &mut Figures) -> anyhow::Result<()> {
    figures.claims = [1, 3].map(|replicas| claim::Claims::of(replicas, options.due)).into();
    for round in 1..=options.rounds {
        for claims in &mut figures.claims {
            options.say(&format!("pending {round}/{}, {} replicas", options.rounds, claims.replicas));
            claims.measure(stage, round).await.context("pending_claim")?;
        }
        options.say(&format!("pending {round}/{}, single rows", options.rounds));
        figures.wake.push(wake::measure(stage, options, round).await.context("pending_wake")?);
    }
    Ok(())
}

/// One round of everything that is measured in rows a second.
async fn rates(stage: &Stage, options: &Options, round: usize, figures: &mut Figures) -> anyhow::Result<()> {
    for payload in Payload::ALL {
        options.say(&format!("round {round}/{} {}", options.rounds, payload.name()));
        let rows = options.rows(payload);
        let rates = figures.of(payload);
        rates.rows = rows;
        rates.payload_bytes = stage.payload_bytes(payload).await?;
        rates.keyset.push(read::keyset(stage, payload, rows).await.context("keyset")?);
        rates.copy.push(read::copy(stage, payload, rows).await.context("copy")?);
        rates.produce.push(produce::measure(stage, rates.payload_bytes, rows).await.context("produce")?);
        rates.relay.push(drain::measure(stage, payload, rows, round).await.context("relay")?);
    }
    figures.sequential.push(sequential::measure(stage, options.sequential).await.context("sequential")?);
    Ok(())
}
