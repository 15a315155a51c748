//! `parked`: what keys that are parked (`on_poison = "park_key"`) cost all others.
//!
//! Keys are parked as they are in earnest: by records that the topic refuses. Rates are those of whole drains, with nothing parked by a
//! relay that may not park, by one that may, and by one that has parked many keys; the three take turns.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use serde_json::json;
use tokio_postgres::Client;

use super::figure::{each, median, rounded, runs};
use super::options::Options;
use super::parked_latency;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::report::{Goal, Report, thousands};
use super::stage::Stage;
use super::watch::Watch;

const TABLE: &str = "public.bookings_parked";
/// Which are parked.
const KEYS: i64 = 1_000;
/// Of the rows that are relayed.
const CUSTOMERS: i64 = 10_000;
/// Of the rate without a parked key.
const RATIO: f64 = 0.95;
/// What the topic takes while it refuses, and what it is sent then.
const REFUSING_BYTES: (&str, i32) = ("2000", 3_000);
/// Kafka's own.
const USUAL_BYTES: &str = "1048588";
const WINDOW: &str = "5ms";
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay's policy, and whether keys are parked.
#[derive(Clone, Copy, Debug)]
struct Kind {
    told: &'static str,
    lines: &'static str,
    keys: i64,
}

const KINDS: [Kind; 3] = [
    Kind { told: "may not park", lines: "on_poison = \"dead_letter\"\n", keys: 0 },
    Kind { told: "park_key, none parked", lines: "on_poison = \"park_key\"\n", keys: 0 },
    Kind { told: "park_key, 1,000 parked", lines: "on_poison = \"park_key\"\n", keys: KEYS },
];

/// A cursor that is to be measured, with its topic.
#[derive(Clone, Debug)]
struct Prepared {
    name: String,
    topic: String,
    kind: Kind,
}

/// Measures rates, then latencies.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    stage.table(TABLE).await?;
    let rounds = options.rounds + 1;
    let mut all = Vec::new();
    for round in 1..=rounds {
        for kind in KINDS {
            options.say(&format!("parked {round}/{rounds}: {} keys", kind.keys));
            all.push(prepare(stage, &owner, kind).await?);
        }
    }
    let rows = options.rows(Payload::Text) / 3;
    let fill = format!(
        "TRUNCATE {TABLE}; INSERT INTO {TABLE} (customer, payload) \
         SELECT 'c' || n % {CUSTOMERS}, rpad(n::text, 200, 'x') FROM generate_series(1, {rows}) AS n"
    );
    owner.batch_execute(&fill).await?;
    owner.batch_execute(&format!("VACUUM ANALYZE {TABLE}")).await?;
    owner.batch_execute("CHECKPOINT").await?;
    let mut rates = [const { Vec::new() }; KINDS.len()];
    for (number, prepared) in all.iter().enumerate() {
        options.say(&format!("parked {}/{}: {}", number + 1, all.len(), prepared.kind.told));
        let rate = drain(stage, &owner, prepared, rows).await?;
        // The first of each kind warms up.
        if number >= KINDS.len() {
            rates[number % KINDS.len()].push(rate);
        }
    }
    tell(report, &rates, rows);
    owner.batch_execute(&format!("TRUNCATE outbox.parked, outbox.parked_key; DROP TABLE {TABLE}")).await?;
    parked_latency::measure(stage, options, report).await
}

fn relay(prepared: &Prepared) -> Relay<'_> {
    Relay {
        name: &prepared.name,
        table: TABLE,
        topic: &prepared.topic,
        payload: Payload::Text.toml(),
        window: WINDOW,
        shards: 1,
        lines: prepared.kind.lines,
    }
}

/// Makes a cursor; where keys are to be parked, the topic refuses a record of each first.
async fn prepare(stage: &Stage, owner: &Client, kind: Kind) -> anyhow::Result<Prepared> {
    let topic = stage.topic().await?;
    let prepared = Prepared { name: format!("parked-{topic}"), topic, kind };
    if kind.keys == 0 {
        return Ok(prepared);
    }
    let (limit, bytes) = REFUSING_BYTES;
    alter(stage, &prepared.topic, limit).await?;
    let poison = format!(
        "TRUNCATE {TABLE}; INSERT INTO {TABLE} (customer, payload) SELECT 'p' || n, repeat('x', {bytes}) FROM generate_series(1, {}) AS n",
        kind.keys
    );
    owner.batch_execute(&poison).await?;
    let mut process = Process::start(&stage.near(), &relay(&prepared), "r1")?;
    let are_parked = async || Ok(parked(owner, &prepared.name).await? >= kind.keys);
    process.until(PATIENCE, "all keys are parked", are_parked).await?;
    process.stop().await?;
    alter(stage, &prepared.topic, USUAL_BYTES).await?;
    Ok(prepared)
}

async fn parked(owner: &Client, cursor: &str) -> anyhow::Result<i64> {
    let sql = "SELECT count(*) FROM outbox.parked_key WHERE cursor = $1 AND NOT released";
    Ok(owner.query_one(sql, &[&cursor]).await?.get(0))
}

/// Sets the largest batch that the topic takes.
pub async fn alter(stage: &Stage, topic: &str, bytes: &str) -> anyhow::Result<()> {
    let admin: AdminClient<DefaultClientContext> = stage.cluster().client_config().create()?;
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic))
        .set("max.message.bytes", bytes)
        .set("file.delete.delay.ms", "0");
    let done = admin.alter_configs([&change], &AdminOptions::new()).await?;
    ensure!(done.iter().all(Result::is_ok), "the topic cannot be altered: {done:?}");
    Ok(())
}

/// Rows a second, from the first records on.
async fn drain(stage: &Stage, owner: &Client, prepared: &Prepared, rows: u64) -> anyhow::Result<f64> {
    stage.rest().await?;
    let watch = Watch::start(stage, &prepared.topic)?;
    let begun = Instant::now();
    let mut process = Process::start(&stage.near(), &relay(prepared), "r1")?;
    while watch.records() < rows {
        tokio::time::sleep(Duration::from_millis(20)).await;
        process.check()?;
        if begun.elapsed() > PATIENCE {
            bail!("{} of {rows} rows have arrived within {PATIENCE:?}:\n{}", watch.records(), process.log());
        }
    }
    let seen = watch.stop()?;
    process.stop().await?;
    stage.close(&prepared.topic, rows).await?;
    let keys = parked(owner, &prepared.name).await?;
    ensure!(keys == prepared.kind.keys, "{keys} keys are parked, expected {}", prepared.kind.keys);
    Ok(seen.per_second(rows))
}

fn tell(report: &mut Report, rates: &[Vec<f64>; KINDS.len()], rows: u64) {
    report.section(format!(
        "parked keys: {} rows of {} other keys (text, 200 B), to Kafka",
        thousands(rows),
        thousands(10_000)
    ));
    let first = &rates[0];
    for (kind, rates) in KINDS.iter().zip(rates) {
        // Beside each other in the same round: what disturbs one disturbs the other.
        let ratio = median(&each(&rates.iter().zip(first).collect::<Vec<_>>(), |(rate, first)| *rate / *first));
        let note = match kind.keys {
            0 if kind.told == KINDS[0].told => String::new(),
            0 => format!("{ratio:.2} of that"),
            _ => format!("{ratio:.2} of the first; {}", Goal::Least(RATIO).told(ratio)),
        };
        report.line(kind.told, rates, "rows/s", note);
        report.results.push(
            json!({"name": "parked", "payload": "text", "payload_bytes": 200, "rows": rows, "cursors": 1, "replicas": 1,
            "lines": kind.lines.trim_end(), "parked_keys": kind.keys, "rows_per_second": rounded(median(rates)),
            "ratio": rounded(ratio), "runs": runs(rates)}),
        );
    }
}

/// The rows of a key that stand in the table, and in `outbox.parked`.
pub async fn withheld(owner: &Client, cursor: &str) -> anyhow::Result<usize> {
    let row = owner.query_one("SELECT count(*) FROM outbox.parked WHERE cursor = $1", &[&cursor]).await?;
    usize::try_from(row.get::<_, i64>(0)).context("a count")
}
