//! `many_cursors`: 1,000 cursors over 20 tables on three replicas: with nothing to do, with single rows, and all at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::figure::{each, median, mib, percentile, rounded, runs};
use super::many_busy::{self, Shares};
use super::options::Options;
use super::payload::Payload;
use super::process::{ANY, Process, Relay, Usage, head};
use super::report::{Goal, Report, thousands};
use super::spent::Spent;
use super::stage::Stage;
use super::tail::{self, wait};

/// Goals, per replica but for PostgreSQL.
const PERCENT: f64 = 2.0;
const POSTGRES_PERCENT: f64 = 5.0;
const CONNECTIONS: f64 = 10.0;
/// A row in a table, until each of the table's cursors has delivered it.
const P99_MS: f64 = 250.0;
const SHARE: f64 = 0.5;

const TABLES: usize = 20;
const REPLICAS: usize = 3;
/// Of the rows of the second step: each of them is a turn of fifty cursors, and the next comes when those are done. More
/// rows would measure the queue before two processors.
const PERIOD: Duration = Duration::from_millis(500);
/// The second step goes on for as long as this at least: few rows say little.
const SINGLE_SECONDS: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(240);

/// All that runs while it is measured.
#[derive(Debug)]
pub struct Many {
    /// How many cursors; as many for each table.
    pub cursors: usize,
    /// The tables.
    pub tables: Vec<String>,
    /// The connection that writes and looks.
    pub owner: Client,
    topic: String,
    replicas: Vec<Process>,
}

/// What was found while nothing was to be done.
#[derive(Debug)]
struct Quiet {
    seconds: u64,
    /// Of a core, for each replica.
    percent: Vec<f64>,
    postgres_percent: f64,
    spent: Spent,
    wal_bytes: i64,
    connections: Vec<f64>,
}

/// Measures all three.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    options.say(&format!("many_cursors: starting {} cursors", options.cursors));
    let mut many = Many::start(stage, options.cursors).await?;
    let begun = Instant::now();
    many.made().await?;
    let made_s = begun.elapsed().as_secs_f64();
    let cursors = thousands(many.cursors as u64);
    report.section(format!("{cursors} cursors over {TABLES} tables, {REPLICAS} replicas"));
    report.line("cursors made after", &[made_s], "s", "");
    options.say("many_cursors: idle");
    let quiet = many.quiet(options.seconds).await?;
    quiet.tell(report);
    options.say("many_cursors: single rows");
    let (written, mut millis) = many.single(stage, options.seconds.max(SINGLE_SECONDS)).await?;
    let (p50, p99) = (percentile(&mut millis, 0.50), percentile(&mut millis, 0.99));
    let deliveries = format!("{written} rows, {} deliveries", millis.len());
    report.line("a row to each of its cursors, p50", &[p50], "ms", deliveries);
    report.judged("a row to each of its cursors, p99", &[p99], "ms", Goal::Most(P99_MS));
    options.say("many_cursors: all busy");
    let shares = many_busy::measure(&many, options.busy_rows).await?;
    let share = shares.slowest_by_median();
    report.line("all busy, together", &[shares.rows_per_second()], "rows/s", format!("{} rows each", shares.rows));
    report.judged("slowest cursor by the median one", &[share], "", Goal::Least(SHARE));
    let usages = many.usages()?;
    let memory = each(&usages, |usage| mib(usage.rss_max_bytes));
    report.line("memory at most, per replica", &memory, "MiB", "");
    let records = (written + TABLES as u64 * shares.rows) * (many.cursors / TABLES) as u64;
    let result = quiet.result(&many, [p50, p99], &shares, &usages);
    many.stop(stage, records).await?;
    report.results.push(result);
    Ok(())
}

impl Many {
    async fn start(stage: &Stage, cursors: usize) -> anyhow::Result<Self> {
        let topic = stage.stamped_topic().await?;
        let tables: Vec<String> = (0..TABLES).map(|number| format!("public.many_{number}")).collect();
        for table in &tables {
            stage.table(table).await?;
        }
        let mut toml = head(&stage.near(), ANY);
        for number in 0..cursors {
            let (name, table) = (format!("many-{number}"), &tables[number % TABLES]);
            let relay = Relay {
                name: &name,
                table,
                topic: &topic,
                payload: Payload::Text.toml(),
                window: "5ms",
                shards: 1,
                lines: "",
            };
            // Turns of a part of the backlog of the third step, so that what is compared is the sharing.
            let _ = writeln!(toml, "{}", relay.section("rows = 100"));
        }
        let started = (0..REPLICAS).map(|number| Process::spawn(&toml, &format!("many{number}")));
        let replicas = started.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { cursors, tables, owner: stage.owner().await?, topic, replicas })
    }

    /// Waits until each cursor is there.
    async fn made(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let sql = "SELECT count(*) FROM outbox.cursor WHERE name LIKE 'many-%'";
        while self.owner.query_one(sql, &[]).await?.get::<_, i64>(0) < i64::try_from(self.cursors)? {
            self.check(begun, "not all cursors are made")?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    fn check(&mut self, begun: Instant, what: &str) -> anyhow::Result<()> {
        self.replicas.iter_mut().try_for_each(Process::check)?;
        if begun.elapsed() > PATIENCE {
            bail!("{what} within {PATIENCE:?}:\n{}", self.replicas[0].log());
        }
        Ok(())
    }

    fn usages(&self) -> anyhow::Result<Vec<Usage>> {
        self.replicas.iter().map(Process::usage).collect()
    }

    async fn quiet(&mut self, seconds: u64) -> anyhow::Result<Quiet> {
        Spent::settle(&self.owner).await?;
        let (cluster, before) = (Spent::look(&self.owner).await?, self.usages()?);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (after, ended) = (self.usages()?, Spent::look(&self.owner).await?);
        let (spent, wal_bytes) = (ended.since(&cluster), ended.wal_bytes(&self.owner, &cluster).await?);
        self.check(Instant::now(), "")?;
        let sql = "SELECT split_part(application_name, '/', 2), count(*) FROM pg_stat_activity \
            WHERE application_name LIKE 'outbox-relay/many%' GROUP BY 1";
        let connections: BTreeMap<String, i64> =
            self.owner.query(sql, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
        ensure!(connections.len() == REPLICAS, "connections of {connections:?}");
        let percent = before.iter().zip(&after).map(|(before, after)| (after.cpu_s - before.cpu_s) * 100.0);
        Ok(Quiet {
            seconds,
            percent: percent.map(|percent| percent / seconds as f64).collect(),
            postgres_percent: spent.cpu_s * 100.0 / seconds as f64,
            spent,
            wal_bytes,
            connections: connections.values().map(|count| *count as f64).collect(),
        })
    }

    /// Commits rows to random tables; how many, and the milliseconds from each row's `created_at` to each of its records in the
    /// broker's log.
    async fn single(&mut self, stage: &Stage, seconds: u64) -> anyhow::Result<(u64, Vec<f64>)> {
        let mut ticks = tokio::time::interval(PERIOD);
        let begun = Instant::now();
        let mut written = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            ticks.tick().await;
            let table = &self.tables[fastrand::usize(..TABLES)];
            let sql = format!("INSERT INTO {table} (customer, payload) VALUES ('c1', repeat('x', 200))");
            self.owner.execute(&sql, &[]).await?;
            written += 1;
        }
        let records = written * self.cursors / TABLES;
        wait(|| stage.records(&self.topic), records).await?;
        let receipts = tail::read(stage, &self.topic, records).await?;
        let millis = each(&receipts, |receipt| (receipt.stamped - receipt.created) * 1e3);
        Ok((u64::try_from(written)?, millis))
    }

    async fn stop(self, stage: &Stage, records: u64) -> anyhow::Result<()> {
        for process in self.replicas {
            process.stop().await?;
        }
        stage.close(&self.topic, records).await
    }
}

impl Quiet {
    fn tell(&self, report: &mut Report) {
        let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let note = |values: &[f64], most: f64| format!("each: {}", Goal::Most(most).told(highest(values)));
        report.line("idle, processor per replica", &self.percent, "% of a core", note(&self.percent, PERCENT));
        report.judged("idle, PostgreSQL", &[self.postgres_percent], "% of a core", Goal::Most(POSTGRES_PERCENT));
        report.judged("idle, transaction ids", &[self.spent.transaction_ids as f64], "", Goal::Most(0.0));
        let wal = "idle, WAL but the server's RUNNING_XACTS";
        report.judged(wal, &[self.wal_bytes as f64], "bytes", Goal::Most(0.0));
        report.line("connections per replica", &self.connections, "", note(&self.connections, CONNECTIONS));
    }

    fn result(&self, many: &Many, [p50, p99]: [f64; 2], shares: &Shares, usages: &[Usage]) -> Value {
        json!({"name": "many_cursors", "payload": "text", "payload_bytes": 200, "cursors": many.cursors,
            "replicas": REPLICAS, "tables": TABLES, "rows": shares.rows,
            "rows_per_second": rounded(shares.rows_per_second()), "ratio": rounded(shares.slowest_by_median()),
            "p50_ms": rounded(p50), "p99_ms": rounded(p99),
            "rss_max_bytes": usages.iter().map(|usage| usage.rss_max_bytes).max(),
            "idle": {"seconds": self.seconds, "cpu_percent": runs(&self.percent),
                "cpu_percent_median": rounded(median(&self.percent)), "postgres_cpu_percent": rounded(self.postgres_percent),
                "transaction_ids": self.spent.transaction_ids, "wal_bytes": self.wal_bytes,
                "connections": runs(&self.connections)}})
    }
}
