//! `takeover`: three replicas under load; the one that holds the cursor is killed; when does another deliver?

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::json;
use tokio_postgres::Client;

use super::figure::{median, rounded, runs};
use super::latency::PER_SECOND;
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::repeats;
use super::report::{Goal, Report};
use super::stage::{LIVE, Stage};
use super::tail::{Tail, now, wait};
use super::writer::Writer;

const NAME: &str = "takeover";
const REPLICAS: usize = 3;
const EACH_MS: f64 = 1_000.0;
/// Between a kill and the next: the replacement is up, and one replica is busy with the cursor.
const SETTLE: Duration = Duration::from_millis(1_500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures and tells.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    options.say("takeover");
    let millis = kill(stage, options).await?;
    report.section("takeover after SIGKILL, three replicas, 1,000 rows/s");
    let highest = millis.iter().copied().fold(0.0, f64::max);
    report.line("first delivery by another", &millis, "ms", format!("each: {}", Goal::Most(EACH_MS).told(highest)));
    report
        .results
        .push(json!({"name": "takeover", "payload": "text", "payload_bytes": 200, "cursors": 1, "replicas": 3,
        "p50_ms": rounded(median(&millis)), "runs": runs(&millis)}));
    repeats::measure(stage, options, report).await
}

/// Kills a holder for each round; milliseconds from each kill to the first receipt of a record that was produced after.
async fn kill(stage: &Stage, options: &Options) -> anyhow::Result<Vec<f64>> {
    let topic = stage.topic().await?;
    let relay = Relay {
        name: NAME,
        table: LIVE,
        topic: &topic,
        payload: Payload::Text.toml(),
        window: "5ms",
        shards: 1,
        lines: "",
    };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("TRUNCATE {LIVE}")).await?;
    let mut replicas = Vec::new();
    for number in 0..REPLICAS {
        let replica = format!("r{number}");
        replicas.push((Process::start(&stage.near(), &relay, &replica)?, replica));
    }
    let tail = Tail::start(stage, &topic)?;
    let writer = Writer::start(stage, PER_SECOND).await?;
    wait(|| Ok(tail.len()), 1).await?;

    let mut millis = Vec::new();
    for round in 0..options.kills {
        tokio::time::sleep(SETTLE).await;
        let holder = holder(&owner).await?;
        let index =
            replicas.iter().position(|(_, name)| *name == holder).context("the holder is none of the replicas")?;
        let (mut process, _) = replicas.swap_remove(index);
        let from = tail.len();
        let killed = now();
        process.kill9()?;
        // The time of a record is whole milliseconds: only one that is later in any case is another replica's.
        let produced_after = now() + 0.001;
        let begun = Instant::now();
        let first = loop {
            if let Some(receipt) = tail.find(from, |receipt| receipt.stamped >= produced_after) {
                break receipt;
            }
            if begun.elapsed() > PATIENCE {
                bail!("nobody has taken over within {PATIENCE:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        millis.push((first.received - killed) * 1e3);
        let replica = format!("r{}", REPLICAS + round);
        replicas.push((Process::start(&stage.near(), &relay, &replica)?, replica));
    }
    let written = writer.stop().await?.len();
    // What a killed replica had delivered and not advanced over comes twice.
    wait(|| Ok(tail.len()), written).await?;
    for (process, _) in replicas {
        process.stop().await?;
    }
    tail.stop()?;
    let consumer: BaseConsumer = stage.cluster().client_config().create()?;
    let (low, high) = consumer.fetch_watermarks(&topic, 0, PATIENCE)?;
    anyhow::ensure!(usize::try_from(high - low)? >= written, "{} of {written} rows have arrived", high - low);
    Ok(millis)
}

/// The replica that has the cursor's row locked now, caught in the act; the last that had, if nobody is.
async fn holder(owner: &Client) -> anyhow::Result<String> {
    let sql = "SELECT split_part(application_name, '/', 2) FROM pg_stat_activity \
               WHERE state = 'idle in transaction' AND backend_xid IS NOT NULL AND application_name LIKE 'outbox-relay/%'";
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        if let Some(row) = owner.query_opt(sql, &[]).await? {
            return Ok(row.get(0));
        }
    }
    let row = owner.query_one("SELECT advanced_by FROM outbox.cursor WHERE name = $1", &[&NAME]).await?;
    row.get::<_, Option<String>>(0).context("no replica has held the cursor")
}
