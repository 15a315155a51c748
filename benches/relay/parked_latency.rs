//! How long rows take while one key of many is refused and parked, beside how long they take without.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;
use tokio_postgres::Client;

use super::figure::{each, median, rounded, runs};
use super::latency::{self, Latency, PER_SECOND, WARM};
use super::options::Options;
use super::parked::withheld;
use super::payload::Payload;
use super::process::{ANY, Process, Relay};
use super::report::{Goal, Report, thousands};
use super::stage::{LIVE, Stage};
use super::tail::{self, now, wait};
use super::writer::Writer;

/// How many keys the rows have.
const CUSTOMERS: u32 = 10_000;
/// By so much may the p99 of the others grow.
const GROWTH_MS: f64 = 10.0;
/// The topic takes 1 MiB.
const TOO_LARGE: i32 = 1_500_000;
const PATIENCE: Duration = Duration::from_secs(30);
/// A tenth of the keys come by while it is watched, and some rows of the parked one.
const SECONDS: u64 = 12;

/// Watches without and with a poison key, in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let rounds = options.watches + 1;
    for round in 1..=rounds {
        options.say(&format!("parked, single rows {round}/{rounds}"));
        without.push(watch(stage, options, false).await?);
        with.push(watch(stage, options, true).await?);
    }
    tell(report, &without, &with);
    Ok(())
}

async fn watch(stage: &Stage, options: &Options, poison: bool) -> anyhow::Result<Latency> {
    let topic = stage.stamped_topic().await?;
    let name = format!("parked-{topic}");
    let relay = Relay {
        name: &name,
        table: LIVE,
        topic: &topic,
        payload: Payload::Text.toml(),
        window: "1ms",
        shards: 1,
        lines: "on_poison = \"park_key\"\n",
    };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("TRUNCATE {LIVE}")).await?;
    let mut process = Process::spawn(&relay.toml(&stage.near(), ANY), "r1")?;
    stage.rest().await?;
    let writer = Writer::of_customers(stage, PER_SECOND, CUSTOMERS).await?;
    wait(|| stage.records(&topic), 1).await?;
    tokio::time::sleep(WARM).await;
    let from = now();
    if poison {
        // The key has rows before it, and some more will come.
        let insert = format!("INSERT INTO {LIVE} (customer, payload) VALUES ('c7', repeat('x', $1))");
        owner.execute(&insert, &[&TOO_LARGE]).await?;
    }
    tokio::time::sleep(Duration::from_secs(options.seconds.max(SECONDS))).await;
    let until = now();
    let committed = writer.stop().await?;
    let parked = drained(&owner, &name, &mut process).await?;
    process.stop().await?;
    let records = committed.len() + usize::from(poison) - parked;
    ensure!(poison == (parked > 0), "{parked} rows are parked");
    let receipts = tail::read(stage, &topic, records).await?;
    stage.close(&topic, records as u64).await?;
    let truncate = "TRUNCATE outbox.parked, outbox.parked_key";
    owner.batch_execute(truncate).await?;
    latency::delays(&receipts, committed, (from, until))
}

/// Waits until the cursor stands at the last row; how many rows are parked then.
async fn drained(owner: &Client, cursor: &str, process: &mut Process) -> anyhow::Result<usize> {
    let last = format!("SELECT id::text FROM {LIVE} ORDER BY created_at DESC, id DESC LIMIT 1");
    let last: String = owner.query_one(&last, &[]).await?.get(0);
    let begun = Instant::now();
    loop {
        let position = owner.query_opt("SELECT position_id FROM outbox.cursor WHERE name = $1", &[&cursor]).await?;
        if position.is_some_and(|row| row.get::<_, Option<&str>>(0) == Some(last.as_str())) {
            return withheld(owner, cursor).await;
        }
        process.check()?;
        if begun.elapsed() > PATIENCE {
            bail!("the rows are not relayed within {PATIENCE:?}:\n{}", process.log());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn tell(report: &mut Report, without: &[Latency], with: &[Latency]) {
    let per_second = thousands(PER_SECOND.into());
    report.section(format!(
        "one poison key among 10,000, {per_second} rows/s to Kafka: created_at of others to the broker's log"
    ));
    let mut line = |what: &str, runs: &[f64], note: String| report.line(what, runs, "ms", note);
    let p99 = [without, with].map(|watched| each(watched, |watch| watch.p99_ms));
    let growth = median(&each(&p99[1].iter().zip(&p99[0]).collect::<Vec<_>>(), |(with, without)| *with - *without));
    line("p50, none parked", &each(without, |watch| watch.p50_ms), String::new());
    line("p50, one parked meanwhile", &each(with, |watch| watch.p50_ms), String::new());
    line("p99, none parked", &p99[0], String::new());
    let note = format!("{growth:+.1} ms; {}", Goal::Most(GROWTH_MS).told(growth));
    line("p99, one parked meanwhile", &p99[1], note);
    line("at most, none parked", &each(without, |watch| watch.max_ms), String::new());
    line("at most, one parked meanwhile", &each(with, |watch| watch.max_ms), String::new());
    for (keys, watched) in [(0, without), (1, with)] {
        let middle = |value: fn(&Latency) -> f64| rounded(median(&each(watched, value)));
        report.results.push(json!({"name": "parked_latency", "payload": "text", "payload_bytes": 200, "cursors": 1, "replicas": 1,
            "target_per_second": PER_SECOND, "keys": CUSTOMERS, "poison_keys": keys, "p50_ms": middle(|watch| watch.p50_ms),
            "p99_ms": middle(|watch| watch.p99_ms), "max_ms": middle(|watch| watch.max_ms),
            "runs": runs(&each(watched, |watch| watch.p99_ms))}));
    }
}
