//! `latency`: how long a single committed row takes, at steady rates from nearly idle to busy.
//!
//! What is judged is the time from a row's `created_at`, which is taken before its commit, to the broker's log: the topic has
//! the broker stamp each record when it appends it, an instant before it acknowledges it, so that this is measured without
//! the relay's own word and without a consumer that takes the machine's time while it is measured. Beside it stand the time
//! from the commit, as the writer learns of it, which is a little late, and the relay's own word of the acknowledgement.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use super::figure::{each, median, mib, percentile, rounded};
use super::options::Options;
use super::payload::Payload;
use super::process::{ANY, Process, Relay};
use super::report::{Goal, Report, thousands};
use super::shown::Shown;
use super::spent::Spent;
use super::stage::{LIVE, Stage};
use super::tail::{self, Receipt, now, wait};
use super::writer::{Committed, Writer};

/// Single-row transactions a second, and what is demanded of them.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: u32,
    /// Lines of the relay's own.
    lines: &'static str,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// The relay's processor time, of one core.
    percent: Option<f64>,
    /// That of PostgreSQL, its writers included, of one core.
    postgres_percent: Option<f64>,
    /// For how much longer than others it is watched.
    times: u64,
}

const FEW: Rate = Rate {
    per_second: 10,
    lines: "",
    p50_ms: None,
    p99_ms: Some(15.0),
    percent: Some(1.5),
    postgres_percent: Some(1.5),
    times: 2,
};
/// The usual one, and the one of the part `takeover`.
const USUAL: Rate = Rate {
    per_second: PER_SECOND,
    lines: "",
    p50_ms: None,
    p99_ms: Some(P99_MS),
    percent: Some(PERCENT),
    postgres_percent: None,
    times: 1,
};
const RATES: [Rate; 5] = [
    Rate { per_second: 1, p99_ms: Some(25.0), percent: None, postgres_percent: None, times: 4, ..FEW },
    FEW,
    USUAL,
    Rate { lines: "freshness = \"1ms\"\n", p50_ms: Some(P50_MS), percent: None, ..USUAL },
    Rate { per_second: 5_000, p99_ms: None, percent: None, ..USUAL },
];
/// See [`USUAL`].
pub const PER_SECOND: u32 = 1_000;

/// Goal at that rate with the least freshness, in milliseconds.
pub const P50_MS: f64 = 4.0;
/// Goal at that rate, in milliseconds.
pub const P99_MS: f64 = 10.0;
/// Goal for the relay's processor time at that rate, of one core.
pub const PERCENT: f64 = 8.0;
const MEMORY_MIB: f64 = 40.0;

/// Before a watch.
pub const WARM: Duration = Duration::from_secs(2);

/// What is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The table that is written to, of [`Stage::table`].
    pub table: &'a str,
    /// For how long.
    pub seconds: u64,
    /// Single-row transactions a second.
    pub per_second: u32,
    /// How many replicas run the relay.
    pub replicas: usize,
    /// The value of `latency_window`.
    pub window: &'a str,
    /// Lines of the relay's own.
    pub lines: &'a str,
    /// Sections of the configuration besides.
    pub sections: &'a str,
}

/// One watch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    rows: usize,
    /// Committed a second: less than asked for when the machine did not keep up.
    pub per_second: f64,
    /// From `created_at` to the broker's log.
    pub p50_ms: f64,
    /// See `p50_ms`.
    pub p99_ms: f64,
    /// See `p50_ms`.
    pub max_ms: f64,
    commit_p50_ms: f64,
    commit_p99_ms: f64,
    /// The relay's own mean, from `created_at` to the broker's acknowledgement.
    acknowledged_ms: f64,
    cpu_s_per_million: f64,
    /// All replicas', of one core.
    pub percent: f64,
    /// That of the replica that took least, and of the one that took most.
    pub least_most_percent: [f64; 2],
    /// All of PostgreSQL's, the writers' sessions included, of one core.
    pub postgres_percent: f64,
    /// Bytes of WAL a second, the writers' included.
    pub wal_per_second: f64,
    /// Transaction ids a second, the writers' included.
    pub transactions_per_second: f64,
    /// Spans that a collector has taken from the first replica, a second.
    pub spans_per_second: f64,
    /// Spans that the first replica has dropped.
    pub spans_dropped: f64,
    rss_max_bytes: u64,
}

/// Measures each rate.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    for rate in RATES {
        let mut watched = Vec::new();
        for round in 1..=options.watches {
            options.say(&format!("latency at {}/s, {round}/{}", rate.per_second, options.watches));
            let Rate { per_second, lines, times, .. } = rate;
            let seconds = options.seconds * times;
            let what = Watched { table: LIVE, seconds, per_second, replicas: 1, window: "1ms", lines, sections: "" };
            watched.push(watch(stage, what).await?);
        }
        tell(report, &rate, &watched);
    }
    Ok(())
}

/// Relays what is written for some seconds, after a while that does not count.
pub async fn watch(stage: &Stage, what: Watched<'_>) -> anyhow::Result<Latency> {
    let topic = stage.stamped_topic().await?;
    let name = format!("latency-{topic}");
    let relay = Relay {
        name: &name,
        table: what.table,
        topic: &topic,
        payload: Payload::Text.toml(),
        window: what.window,
        shards: 1,
        lines: what.lines,
    };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("TRUNCATE {}", what.table)).await?;
    // A port that was free a moment ago; the other replicas have ports that are not asked.
    let admin = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let toml = |admin: &str| format!("{}{}", what.sections, relay.toml(&stage.near(), admin));
    let mut processes = vec![Process::spawn(&toml(&admin), "r1")?];
    for number in 2..=what.replicas {
        processes.push(Process::spawn(&toml(ANY), &format!("r{number}"))?);
    }
    stage.rest().await?;
    let writer = Writer::into_table(stage, what.table, what.per_second).await?;
    wait(|| stage.records(&topic), 1).await?;
    tokio::time::sleep(WARM).await;
    let used = |processes: &[Process]| processes.iter().map(Process::usage).collect::<anyhow::Result<Vec<_>>>();
    owner.batch_execute("SELECT pg_stat_statements_reset()").await?;
    let (from, before, own) = (now(), used(&processes)?, Shown::ask(&admin).await?);
    let spent = Spent::look(&owner).await?;
    tokio::time::sleep(Duration::from_secs(what.seconds)).await;
    let spent = Spent::look(&owner).await?.since(&spent);
    let (until, after, own) = (now(), used(&processes)?, Shown::ask(&admin).await?.since(&own));
    let committed = writer.stop().await?;
    wait(|| stage.records(&topic), committed.len()).await?;
    for process in processes {
        process.stop().await?;
    }
    let receipts = tail::read(stage, &topic, committed.len()).await?;
    stage.close(&topic, committed.len() as u64).await?;

    let used = after.iter().zip(&before).map(|(after, before)| after.cpu_s - before.cpu_s);
    let mut latency = delays(&receipts, committed, (from, until))?;
    latency.acknowledged_ms = own.latency_mean_ms();
    latency.spans_per_second = own.spans_exported / (until - from);
    latency.spans_dropped = own.spans_dropped;
    latency.rss_max_bytes = after.iter().map(|usage| usage.rss_max_bytes).max().unwrap_or(0);
    latency.charge(&used.collect::<Vec<_>>(), &spent, until - from);
    Ok(latency)
}

/// How long the rows took that were created in this time; nothing of what that cost.
pub fn delays(receipts: &[Receipt], committed: Vec<Committed>, (from, until): (f64, f64)) -> anyhow::Result<Latency> {
    let committed: HashMap<i64, f64> = committed.into_iter().collect();
    let watched: Vec<&Receipt> =
        receipts.iter().filter(|receipt| receipt.created >= from && receipt.created < until).collect();
    ensure!(!watched.is_empty(), "no row was written while it was watched");
    let mut since_created = each(&watched, |receipt| (receipt.stamped - receipt.created) * 1e3);
    let since_commit = |receipt: &&Receipt| Some((receipt.stamped - committed.get(&receipt.id)?) * 1e3);
    let mut since_commit: Vec<f64> = watched.iter().filter_map(since_commit).collect();
    ensure!(since_commit.len() == watched.len(), "a record has no row");
    Ok(Latency {
        rows: watched.len(),
        per_second: watched.len() as f64 / (until - from),
        p50_ms: percentile(&mut since_created, 0.50),
        p99_ms: percentile(&mut since_created, 0.99),
        max_ms: percentile(&mut since_created, 1.0),
        commit_p50_ms: percentile(&mut since_commit, 0.50),
        commit_p99_ms: percentile(&mut since_commit, 0.99),
        ..Latency::default()
    })
}

impl Latency {
    /// Takes in what each replica, and PostgreSQL, has spent in so many seconds.
    fn charge(&mut self, replicas: &[f64], spent: &Spent, seconds: f64) {
        let cpu_s: f64 = replicas.iter().sum();
        let percent =
            |start: f64, choose: fn(f64, f64) -> f64| replicas.iter().copied().fold(start, choose) * 100.0 / seconds;
        self.cpu_s_per_million = cpu_s * 1e6 / self.rows as f64;
        self.percent = cpu_s * 100.0 / seconds;
        self.least_most_percent = [percent(f64::MAX, f64::min), percent(0.0, f64::max)];
        self.postgres_percent = spent.cpu_s * 100.0 / seconds;
        self.wal_per_second = spent.wal as f64 / seconds;
        self.transactions_per_second = spent.transaction_ids as f64 / seconds;
    }
}

fn tell(report: &mut Report, rate: &Rate, watched: &[Latency]) {
    let of = |value: fn(&Latency) -> f64| each(watched, value);
    let memory = watched.iter().map(|watch| watch.rss_max_bytes).max().unwrap_or(0);
    let (per_second, lines) = (rate.per_second, rate.lines.trim_end());
    let with = if lines.is_empty() { String::new() } else { format!(", {lines}") };
    let told = thousands(per_second.into());
    report.section(format!("latency at {told} rows/s, latency_window 1 ms{with}: created_at to the broker's log"));
    let mut line = |what: &str, runs: &[f64], unit: &str, most: Option<f64>| match most {
        Some(most) => report.judged(what, runs, unit, Goal::Most(most)),
        None => report.line(what, runs, unit, ""),
    };
    line("p50", &of(|watch| watch.p50_ms), "ms", rate.p50_ms);
    line("p99", &of(|watch| watch.p99_ms), "ms", rate.p99_ms);
    line("p50 from the commit", &of(|watch| watch.commit_p50_ms), "ms", None);
    line("p99 from the commit", &of(|watch| watch.commit_p99_ms), "ms", None);
    line("created_at to acknowledgement, mean", &of(|watch| watch.acknowledged_ms), "ms (its own word)", None);
    line("at most", &of(|watch| watch.max_ms), "ms", None);
    line("processor", &of(|watch| watch.percent), "% of a core", rate.percent);
    line("PostgreSQL, writers included", &of(|watch| watch.postgres_percent), "% of a core", rate.postgres_percent);
    line("memory at most", &[mib(memory)], "MiB", Some(MEMORY_MIB));
    line("rows really written", &of(|watch| watch.per_second), "rows/s", None);
    let middle = |value: fn(&Latency) -> f64| rounded(median(&of(value)));
    let runs = watched.iter().map(|run| json!({"p50_ms": rounded(run.p50_ms), "p99_ms": rounded(run.p99_ms)}));
    report.results.push(json!({"name": "latency", "payload": "text", "payload_bytes": 200,
        "lines": lines, "rows": watched.iter().map(|watch| watch.rows).min(), "cursors": 1, "replicas": 1, "target_per_second": per_second,
        "rows_per_second": middle(|watch| watch.per_second), "cpu_s_per_million": middle(|watch| watch.cpu_s_per_million),
        "cpu_percent": middle(|watch| watch.percent), "rss_max_bytes": memory, "p50_ms": middle(|watch| watch.p50_ms),
        "p99_ms": middle(|watch| watch.p99_ms), "commit_p50_ms": middle(|watch| watch.commit_p50_ms),
        "commit_p99_ms": middle(|watch| watch.commit_p99_ms),
        "postgres_percent": middle(|watch| watch.postgres_percent), "max_ms": middle(|watch| watch.max_ms),
        "acknowledged_mean_ms": middle(|watch| watch.acknowledged_ms), "runs": runs.collect::<Vec<_>>()}));
}
