//! `primary_load`: what replicas cost the database that the application writes to, beside its writers alone.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::figure::{each, median, rounded, runs};
use super::latency::{self, Latency, PER_SECOND, WARM, Watched};
use super::options::Options;
use super::report::{Goal, Report};
use super::spent::Spent;
use super::stage::{LIVE, Stage};
use super::writer::Writer;

const REPLICAS: usize = 3;
/// Of one core, beside the writers alone.
const POSTGRES_PERCENT: f64 = 8.0;
/// Of one core.
const HOLDER_PERCENT: f64 = 8.0;
/// Of one core.
const STANDBY_PERCENT: f64 = 1.0;
const P99_MS: f64 = 10.0;
const MAX_MS: f64 = 50.0;
/// The goals of a relay that need not be as quick.
const RELAXED: (&str, f64) = ("freshness = \"100ms\"\n", 2.0);

/// What PostgreSQL takes for the writers.
#[derive(Clone, Copy, Debug)]
struct Alone {
    percent: f64,
    wal_per_second: f64,
    transactions_per_second: f64,
}

const THREE_REPLICAS: Watched = Watched {
    table: LIVE,
    seconds: 0,
    per_second: PER_SECOND,
    replicas: REPLICAS,
    window: "1ms",
    lines: "",
    sections: "",
};

/// Measures and tells.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (mut alone, mut three, mut relaxed) = (Vec::new(), Vec::new(), Vec::new());
    let mut statements = Vec::new();
    let three_replicas = Watched { seconds: options.seconds, ..THREE_REPLICAS };
    for round in 1..=options.watches {
        options.say(&format!("load on the primary, {round}/{}", options.watches));
        alone.push(writers_alone(stage, options.seconds).await?);
        three.push(latency::watch(stage, three_replicas).await?);
        statements = calls(stage).await?;
        relaxed.push(latency::watch(stage, Watched { replicas: 1, lines: RELAXED.0, ..three_replicas }).await?);
    }
    report.section("load on the primary at 1,000 rows/s, three replicas, latency_window 1 ms");
    report.line("PostgreSQL, writers alone", &each(&alone, |alone| alone.percent), "% of a core", "");
    let beside = |watched: &[Latency]| -> Vec<f64> {
        watched.iter().zip(&alone).map(|(watched, alone)| watched.postgres_percent - alone.percent).collect()
    };
    report.judged("PostgreSQL, beside that", &beside(&three), "% of a core", Goal::Most(POSTGRES_PERCENT));
    let of = |value: fn(&Latency) -> f64| each(&three, value);
    report.judged(
        "replica that takes most",
        &of(|watch| watch.least_most_percent[1]),
        "% of a core",
        Goal::Most(HOLDER_PERCENT),
    );
    report.judged(
        "replica that takes least",
        &of(|watch| watch.least_most_percent[0]),
        "% of a core",
        Goal::Most(STANDBY_PERCENT),
    );
    report.judged("p99", &of(|watch| watch.p99_ms), "ms", Goal::Most(P99_MS));
    report.judged("at most", &of(|watch| watch.max_ms), "ms", Goal::Most(MAX_MS));
    let more = |value: fn(&Latency) -> f64, of: fn(&Alone) -> f64| -> Vec<f64> {
        three.iter().zip(&alone).map(|(three, alone)| value(three) - of(alone)).collect()
    };
    let ids = more(|watch| watch.transactions_per_second, |alone| alone.transactions_per_second);
    report.line("transaction ids beside the writers'", &ids, "a second", "");
    let wal = more(|watch| watch.wal_per_second / 1024.0, |alone| alone.wal_per_second / 1024.0);
    report.line("WAL beside the writers'", &wal, "KiB a second", "");
    for Calls { statement, per_second, micros, hits } in &statements {
        let note = format!("{per_second:.0} a second, {hits:.1} buffers each");
        report.line(statement, &[*micros], "µs a call", note);
    }
    report.section("the same, one replica with freshness = \"100ms\"");
    report.judged("PostgreSQL, beside the writers", &beside(&relaxed), "% of a core", Goal::Most(RELAXED.1));
    report.judged("relay", &each(&relaxed, |watch| watch.percent), "% of a core", Goal::Most(RELAXED.1));
    report.judged("p99", &each(&relaxed, |watch| watch.p99_ms), "ms", Goal::Most(100.0));
    report.results.push(json!({"name": "primary_load", "replicas": REPLICAS, "target_per_second": PER_SECOND,
        "writers_percent": rounded(median(&each(&alone, |alone| alone.percent))), "runs": runs(&beside(&three)),
        "relaxed": runs(&beside(&relaxed))}));
    Ok(())
}

async fn writers_alone(stage: &Stage, seconds: u64) -> anyhow::Result<Alone> {
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("TRUNCATE {LIVE}")).await?;
    stage.rest().await?;
    let writer = Writer::start(stage, PER_SECOND).await?;
    tokio::time::sleep(WARM).await;
    let before = Spent::look(&owner).await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let spent = Spent::look(&owner).await?.since(&before);
    writer.stop().await?;
    let seconds = seconds as f64;
    Ok(Alone {
        percent: spent.cpu_s * 100.0 / seconds,
        wal_per_second: spent.wal as f64 / seconds,
        transactions_per_second: spent.transaction_ids as f64 / seconds,
    })
}

/// What one statement of the relay took.
#[derive(Debug)]
struct Calls {
    statement: String,
    per_second: f64,
    micros: f64,
    hits: f64,
}

/// The statements of the relay's role that took most time since the last reset.
async fn calls(stage: &Stage) -> anyhow::Result<Vec<Calls>> {
    let sql = "SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 34), \
        calls / extract(epoch FROM clock_timestamp() - i.stats_reset)::float8, mean_exec_time * 1e3, \
        shared_blks_hit::float8 / calls FROM pg_stat_statements s, pg_stat_statements_info i \
        WHERE s.userid = 'relay'::regrole ORDER BY total_exec_time DESC LIMIT 9";
    let rows = stage.owner().await?.query(sql, &[]).await.context("pg_stat_statements")?;
    let calls = rows.iter().map(|row| Calls {
        statement: row.get(0),
        per_second: row.get(1),
        micros: row.get(2),
        hits: row.get(3),
    });
    Ok(calls.collect())
}
