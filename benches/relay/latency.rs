//! `latency`: from a row's `created_at` to its receipt by a consumer, at a steady 1,000 transactions a second.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use super::figure::percentile;
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::stage::{LIVE, Stage};
use super::tail::{Receipt, Tail, now};
use super::writer::Writer;

/// Single-row transactions a second.
pub const PER_SECOND: u32 = 1_000;

const WARM: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// One watch.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// Rows that were watched.
    pub rows: usize,
    /// How many of them were committed a second: less than [`PER_SECOND`] when the machine did not keep up.
    pub per_second: f64,
    /// Their median in milliseconds.
    pub p50_ms: f64,
    /// The time that one in a hundred exceeds.
    pub p99_ms: f64,
    /// Processor seconds for a million rows.
    pub cpu_s_per_million: f64,
    /// Part of one core that the relay used.
    pub cores: f64,
}

/// Relays what is written for `options.seconds`, after a second that does not count.
pub async fn measure(stage: &Stage, options: &Options, round: usize) -> anyhow::Result<Latency> {
    let topic = stage.topic().await?;
    let name = format!("latency-{round}");
    let relay = Relay { name: &name, table: LIVE, topic: &topic, payload: Payload::Text.toml() };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("TRUNCATE {LIVE}")).await?;
    let process = Process::start(stage, &relay, "r1")?;
    let tail = Tail::start(stage, &topic)?;
    let writer = Writer::start(stage, PER_SECOND).await?;
    wait(&tail, 1).await?;
    tokio::time::sleep(WARM).await;
    let (from, before) = (now(), process.usage()?);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let (until, after) = (now(), process.usage()?);
    let written = writer.stop().await?;
    wait(&tail, usize::try_from(written)?).await?;
    process.stop().await?;
    let receipts = tail.stop()?;
    stage.close(&topic, written).await?;

    let watched = |receipt: &&Receipt| receipt.created >= from && receipt.created < until;
    let mut millis: Vec<f64> =
        receipts.iter().filter(watched).map(|receipt| (receipt.received - receipt.created) * 1e3).collect();
    ensure!(!millis.is_empty(), "no row was written while it was watched");
    let cpu_s = after.cpu_s - before.cpu_s;
    Ok(Latency {
        rows: millis.len(),
        per_second: millis.len() as f64 / (until - from),
        p50_ms: percentile(&mut millis, 0.50),
        p99_ms: percentile(&mut millis, 0.99),
        cpu_s_per_million: cpu_s * 1e6 / millis.len() as f64,
        cores: cpu_s / (until - from),
    })
}

/// Waits until this many records have arrived.
pub async fn wait(tail: &Tail, records: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    while tail.len() < records {
        if begun.elapsed() > PATIENCE {
            bail!("only {} of {records} records have arrived within {PATIENCE:?}", tail.len());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
