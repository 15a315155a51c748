//! `latency`: how long a single committed row takes, at steady rates from nearly idle to busy.
//!
//! What is judged is the time from a row's `created_at`, which is taken before its commit, to the broker's log: the topic has
//! the broker stamp each record when it appends it, an instant before it acknowledges it, so that this is measured without
//! the relay's own word and without a consumer that takes the machine's time while it is measured. Beside it stand the time
//! from the commit, as the writer learns of it, which is a little late, and the relay's own word of the acknowledgement.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::figure::{each, median, mib, percentile, rounded};
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::report::{Goal, Report, thousands};
use super::stage::{LIVE, Stage};
use super::tail::{self, Receipt, now, wait};
use super::writer::Writer;

/// Single-row transactions a second.
const RATES: [u32; 3] = [10, 1_000, 5_000];
/// The rate that the goals are for, and with it the rate of the part `takeover`.
pub const PER_SECOND: u32 = RATES[1];

/// Goal at that rate, in milliseconds.
pub const P50_MS: f64 = 4.0;
/// Goal at that rate, in milliseconds.
pub const P99_MS: f64 = 10.0;
/// Goal for the relay's processor time at that rate, of one core.
pub const PERCENT: f64 = 12.0;
const MEMORY_MIB: f64 = 40.0;

const WARM: Duration = Duration::from_secs(2);

/// One watch.
#[derive(Clone, Copy, Debug)]
struct Latency {
    rows: usize,
    /// Committed a second: less than asked for when the machine did not keep up.
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    commit_p50_ms: f64,
    commit_p99_ms: f64,
    /// The relay's own mean, from `created_at` to the broker's acknowledgement.
    acknowledged_ms: f64,
    cpu_s_per_million: f64,
    /// Of one core.
    percent: f64,
    rss_max_bytes: u64,
}

/// Measures each rate.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    for per_second in RATES {
        let mut watched = Vec::new();
        for round in 1..=options.watches {
            options.say(&format!("latency at {per_second}/s, {round}/{}", options.watches));
            watched.push(watch(stage, options.seconds, per_second).await?);
        }
        tell(report, per_second, &watched);
    }
    Ok(())
}

/// Relays what is written for some seconds, after a while that does not count.
async fn watch(stage: &Stage, seconds: u64, per_second: u32) -> anyhow::Result<Latency> {
    let topic = stage.stamped_topic().await?;
    let name = format!("latency-{topic}");
    let relay =
        Relay { name: &name, table: LIVE, topic: &topic, payload: Payload::Text.toml(), window: "1ms", shards: 1 };
    stage.owner().await?.batch_execute(&format!("TRUNCATE {LIVE}")).await?;
    // A port that was free a moment ago.
    let admin = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let process = Process::spawn(&relay.toml(&stage.near(), &admin), "r1")?;
    stage.rest().await?;
    let writer = Writer::start(stage, per_second).await?;
    wait(|| stage.records(&topic), 1).await?;
    tokio::time::sleep(WARM).await;
    let (from, before, own) = (now(), process.usage()?, Own::ask(&admin).await?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (until, after, own) = (now(), process.usage()?, Own::ask(&admin).await?.since(&own));
    let committed = writer.stop().await?;
    wait(|| stage.records(&topic), committed.len()).await?;
    process.stop().await?;
    let receipts = tail::read(stage, &topic, committed.len()).await?;
    stage.close(&topic, committed.len() as u64).await?;

    let committed: HashMap<i64, f64> = committed.into_iter().collect();
    let watched: Vec<&Receipt> =
        receipts.iter().filter(|receipt| receipt.created >= from && receipt.created < until).collect();
    ensure!(!watched.is_empty(), "no row was written while it was watched");
    let mut since_created = each(&watched, |receipt| (receipt.stamped - receipt.created) * 1e3);
    let since_commit = |receipt: &&Receipt| Some((receipt.stamped - committed.get(&receipt.id)?) * 1e3);
    let mut since_commit: Vec<f64> = watched.iter().filter_map(since_commit).collect();
    ensure!(since_commit.len() == watched.len(), "a record has no row");
    let cpu_s = after.cpu_s - before.cpu_s;
    Ok(Latency {
        rows: watched.len(),
        per_second: watched.len() as f64 / (until - from),
        p50_ms: percentile(&mut since_created, 0.50),
        p99_ms: percentile(&mut since_created, 0.99),
        commit_p50_ms: percentile(&mut since_commit, 0.50),
        commit_p99_ms: percentile(&mut since_commit, 0.99),
        acknowledged_ms: own.mean_ms(),
        cpu_s_per_million: cpu_s * 1e6 / watched.len() as f64,
        percent: cpu_s * 100.0 / (until - from),
        rss_max_bytes: after.rss_max_bytes,
    })
}

/// The relay's own histogram `delivery_latency_seconds`.
#[derive(Clone, Copy, Debug)]
struct Own {
    sum: f64,
    count: f64,
}

impl Own {
    async fn ask(admin: &str) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let text = client.get(format!("http://{admin}/metrics")).send().await?.text().await?;
        let value = |name: &str| {
            let prefix = format!("outbox_relay_delivery_latency_seconds_{name}{{");
            let line = text.lines().find(|line| line.starts_with(&prefix))?;
            line.rsplit(' ').next()?.parse().ok()
        };
        let (sum, count) = value("sum").zip(value("count")).context("no delivery_latency_seconds")?;
        Ok(Self { sum, count })
    }

    fn since(self, before: &Self) -> Self {
        Self { sum: self.sum - before.sum, count: self.count - before.count }
    }

    fn mean_ms(self) -> f64 {
        self.sum * 1e3 / self.count
    }
}

fn tell(report: &mut Report, per_second: u32, watched: &[Latency]) {
    let of = |value: fn(&Latency) -> f64| each(watched, value);
    let memory = watched.iter().map(|watch| watch.rss_max_bytes).max().unwrap_or(0);
    let rate = thousands(per_second.into());
    report.section(format!("latency at {rate} rows/s, latency_window 1 ms: created_at to the broker's log"));
    let judged = per_second == PER_SECOND;
    let mut line = |what: &str, runs: &[f64], unit: &str, most: Option<f64>| match most.filter(|_| judged) {
        Some(most) => report.judged(what, runs, unit, Goal::Most(most)),
        None => report.line(what, runs, unit, ""),
    };
    line("p50", &of(|watch| watch.p50_ms), "ms", Some(P50_MS));
    line("p99", &of(|watch| watch.p99_ms), "ms", Some(P99_MS));
    line("p50 from the commit", &of(|watch| watch.commit_p50_ms), "ms", None);
    line("p99 from the commit", &of(|watch| watch.commit_p99_ms), "ms", None);
    line("created_at to acknowledgement, mean", &of(|watch| watch.acknowledged_ms), "ms (its own word)", None);
    line("processor", &of(|watch| watch.percent), "% of a core", Some(PERCENT));
    line("memory at most", &[mib(memory)], "MiB", Some(MEMORY_MIB));
    line("rows really written", &of(|watch| watch.per_second), "rows/s", None);
    let middle = |value: fn(&Latency) -> f64| rounded(median(&of(value)));
    let runs = watched.iter().map(|run| json!({"p50_ms": rounded(run.p50_ms), "p99_ms": rounded(run.p99_ms)}));
    report.results.push(json!({"name": "latency", "payload": "text", "payload_bytes": 200,
        "rows": watched.iter().map(|watch| watch.rows).min(), "cursors": 1, "replicas": 1, "target_per_second": per_second,
        "rows_per_second": middle(|watch| watch.per_second), "cpu_s_per_million": middle(|watch| watch.cpu_s_per_million),
        "cpu_percent": middle(|watch| watch.percent), "rss_max_bytes": memory, "p50_ms": middle(|watch| watch.p50_ms),
        "p99_ms": middle(|watch| watch.p99_ms), "commit_p50_ms": middle(|watch| watch.commit_p50_ms),
        "commit_p99_ms": middle(|watch| watch.commit_p99_ms),
        "acknowledged_mean_ms": middle(|watch| watch.acknowledged_ms), "runs": runs.collect::<Vec<_>>()}));
}
