//! `schedules`: how late actions begin when many schedules are there and few of them are due.
//!
//! Each schedule is due every 100 minutes, all of them spread evenly over these: one in a hundred a minute. The receiver is an
//! HTTP server in this process. Begun means claimed by the replica, which sends then; by PostgreSQL's clock.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use outbox_testkit::provider::{Answer, Provider};
use serde_json::{Value, json};

use super::figure::{mib, percentile};
use super::options::Options;
use super::process::Process;
use super::report::{Goal, Report, thousands};
use super::spent::Spent;
use super::stage::Stage;

/// Schedules are spread over so many seconds, and are due again after them.
const PERIOD: i64 = 6_000;
const P99_MS: f64 = 1_000.0;
const TENANTS: i64 = 1_000;
/// From the first look on, until all next occurrences are computed.
const COMPUTING: Duration = Duration::from_secs(300);
/// Until what was due has ended.
const ENDING: Duration = Duration::from_secs(30);

/// Their beginnings lie in the past: whenever computing ends, the same number is due each second.
const FILL: &str = "INSERT INTO outbox.schedule (name, tenant, relay, rule, starts_at, overlap) \
    SELECT 's' || i, 't' || i % $2::bigint, $3, 'FREQ=MINUTELY;INTERVAL=100', \
           date_trunc('second', now()) - floor(i * $4::float8 / $1::bigint) * interval '1 second', 'queue' \
    FROM generate_series(1, $1::bigint) AS i";
const UNKNOWN: &str = "SELECT count(*) FROM outbox.schedule WHERE relay = $1 AND next_at IS NULL";
const OPEN: &str = "SELECT count(*) FROM outbox.action WHERE relay = $1 AND status <> 'completed'";
const DUE: &str = "SELECT count(*), count(*) FILTER (WHERE status = 'completed') FROM outbox.action \
    WHERE relay = $1 AND planned_at >= $2::text::timestamptz AND planned_at < $2::text::timestamptz + $3::float8 * interval '1 second'";
const LATE: &str = "SELECT (extract(epoch FROM started_at - planned_at) * 1000)::float8 FROM outbox.action \
    WHERE relay = $1 AND planned_at >= $2::text::timestamptz AND planned_at < $2::text::timestamptz + $3::float8 * interval '1 second'";

/// What was watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// How many schedules there were.
    pub schedules: u64,
    /// How long it was watched.
    pub seconds: u64,
    /// How many occurrences came.
    pub actions: u64,
    /// Next occurrences computed and written a second, when all schedules were new.
    pub computed_per_second: f64,
    /// The median of the lateness in milliseconds.
    pub p50_ms: f64,
    /// What one in a hundred exceeds.
    pub p99_ms: f64,
    /// The highest.
    pub max_ms: f64,
    /// The relay's processor seconds per second.
    pub relay_cores: f64,
    /// PostgreSQL's, all of its processes.
    pub postgres_cores: f64,
    /// The most memory of the relay.
    pub rss_max_bytes: u64,
}

impl Watched {
    /// For people and programs.
    pub fn tell(&self, report: &mut Report) {
        let Self { schedules, seconds, actions, .. } = *self;
        report.section(format!("{} schedules, {actions} due in {seconds} s", thousands(schedules)));
        report.line("begun after, p50", &[self.p50_ms], "ms", "");
        report.judged("begun after, p99", &[self.p99_ms], "ms", Goal::Most(P99_MS));
        report.line("begun after, at most", &[self.max_ms], "ms", "");
        report.line("processor", &[self.relay_cores * 100.0], "% of a core", "");
        report.line("PostgreSQL", &[self.postgres_cores * 100.0], "% of a core", "");
        report.line("memory at most", &[mib(self.rss_max_bytes)], "MiB", "");
        report.line("new ones computed", &[self.computed_per_second], "schedules/s", "");
        report.results.push(self.result());
    }

    fn result(&self) -> Value {
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        json!({"name": "schedules", "schedules": self.schedules, "seconds": self.seconds, "rows": self.actions, "replicas": 1,
            "p50_ms": thousandths(self.p50_ms), "p99_ms": thousandths(self.p99_ms), "max_ms": thousandths(self.max_ms),
            "relay_cores": thousandths(self.relay_cores), "postgres_cores": thousandths(self.postgres_cores),
            "computed_per_second": self.computed_per_second.round(), "rss_max_bytes": self.rss_max_bytes})
    }
}

/// Watches one replica.
pub async fn measure(stage: &Stage, options: &Options) -> anyhow::Result<Watched> {
    let owner = stage.owner().await?;
    let provider = Provider::start(|_| Answer::Accept).await?;
    let name = "schedules";
    owner.batch_execute("TRUNCATE outbox.schedule, outbox.action").await?;
    let count = i64::try_from(options.schedules)?;
    owner.execute(FILL, &[&count, &TENANTS, &name, &(PERIOD as f64)]).await?;
    let toml = format!(
        "[postgres]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"{name}\"\n[relay.source.schedule]\n\
         [relay.sink.http]\nurl = \"{}/\"\n",
        stage.url(),
        provider.url()
    );
    let begun = Instant::now();
    let mut process = Process::spawn(&toml, "r1")?;
    let none = async |sql: &str| anyhow::Ok(owner.query_one(sql, &[&name]).await?.get::<_, i64>(0) == 0);
    process.until(COMPUTING, "all next occurrences are computed", async || none(UNKNOWN).await).await?;
    let computed_per_second = options.schedules as f64 / begun.elapsed().as_secs_f64();
    // What was due meanwhile.
    process.until(ENDING, "what was due has ended", async || none(OPEN).await).await?;
    // The stage has no autovacuum, which would do this now.
    owner.batch_execute("VACUUM ANALYZE outbox.schedule").await.context("vacuum")?;

    let (seconds, relay) = (options.schedule_seconds as f64, process.usage()?);
    let postgres = Spent::look(&owner).await?;
    let from = "SELECT (date_trunc('second', clock_timestamp()) + interval '1 second')::text";
    let from: String = owner.query_one(from, &[]).await?.get(0);
    // A second more than is judged, so that the last ones fall into the time for which processors are read.
    tokio::time::sleep(Duration::from_secs_f64(seconds + 1.0)).await;
    let after = process.usage()?;
    let used = Spent::look(&owner).await?.since(&postgres).cpu_s;
    let all = async || {
        let row = owner.query_one(DUE, &[&name, &from, &seconds]).await?;
        Ok(row.get::<_, i64>(0) == row.get::<_, i64>(1))
    };
    process.until(ENDING, "what became due has ended", all).await?;
    process.stop().await?;
    let mut millis: Vec<f64> =
        owner.query(LATE, &[&name, &from, &seconds]).await?.iter().map(|row| row.get(0)).collect();
    let expected = options.schedules as f64 * seconds / PERIOD as f64;
    let actions = millis.len() as f64;
    ensure!((actions - expected).abs() <= expected / 100.0 + 20.0, "{actions} occurrences, expected {expected:.0}");
    Ok(Watched {
        schedules: options.schedules,
        seconds: options.schedule_seconds,
        actions: millis.len() as u64,
        computed_per_second,
        p50_ms: percentile(&mut millis, 0.50),
        p99_ms: percentile(&mut millis, 0.99),
        max_ms: percentile(&mut millis, 1.0),
        relay_cores: (after.cpu_s - relay.cpu_s) / (seconds + 1.0),
        postgres_cores: used / (seconds + 1.0),
        rss_max_bytes: after.rss_max_bytes,
    })
}
