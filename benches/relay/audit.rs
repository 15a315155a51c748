//! `audit`: what it costs to record what is passed, and to compare it with the table.
//!
//! Rates are those of whole drains, with and without the audit in turn; then the slices of the last one are compared, once each. What it
//! costs at a steady rate is `audit_load.rs`.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;
use tokio_postgres::Client;

use super::audit_load;
use super::figure::{each, median, median_of, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::{ANY, Process, Relay};
use super::report::{Goal, Report, thousands};
use super::spent::Spent;
use super::stage::Stage;

const WINDOW: &str = "5ms";
const PATIENCE: Duration = Duration::from_secs(300);
/// Of the rate without the audit.
const RATIO: f64 = 0.95;
/// Of a core, for comparing at 1,000 rows/s.
const COMPARING: f64 = 0.5;
/// How often each slice is compared.
const COMPARISONS: f64 = 3.0;

/// One drain.
#[derive(Clone, Copy, Debug)]
struct Drained {
    rows_per_second: f64,
    /// Of the relay and of PostgreSQL, for a million rows.
    cpu_s_per_million: f64,
    wal_bytes_per_row: f64,
}

/// Measures drains, then comparisons.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    let rows = options.rows(Payload::Text);
    stage.fill(Payload::Text, rows).await?;
    let rounds = options.rounds + 1;
    let mut drains = [Vec::new(), Vec::new()];
    let mut compared = None;
    for round in 1..=rounds {
        for (is_audited, drains) in [false, true].into_iter().zip(&mut drains) {
            options.say(&format!("audit {round}/{rounds}: {}", if is_audited { "on" } else { "off" }));
            let compares = is_audited && round == rounds;
            let (drained, comparing) = drain(stage, &owner, rows, is_audited, compares).await?;
            // The first of each warms up.
            if round > 1 {
                drains.push(drained);
            }
            compared = comparing.or(compared);
        }
    }
    tell(report, &drains, rows);
    let Some((cpu_s, slices)) = compared else { bail!("nothing was compared") };
    // Seconds for a million rows, of which there are 1,000 a second: thousandths of a core.
    let percent = cpu_s * COMPARISONS / 10.0;
    report.line(
        "comparing a million rows",
        &[cpu_s],
        "CPU s",
        format!(
            "{slices} slices, relay and PostgreSQL; three times at 1,000 rows/s: {percent:.2} % of a core, {}",
            Goal::Most(COMPARING).told(percent)
        ),
    );
    report.results.push(json!({"name": "audit", "what": "comparing", "rows": rows, "slices": slices,
        "cpu_s_per_million": rounded(cpu_s), "core_percent_at_1000_rows_per_second": rounded(percent)}));
    audit_load::measure(stage, options, report).await
}

/// Drains the table through a new cursor; then has its slices compared, and gives processor seconds for a million rows, and how many
/// slices there were.
async fn drain(
    stage: &Stage,
    owner: &Client,
    rows: u64,
    is_audited: bool,
    compares: bool,
) -> anyhow::Result<(Drained, Option<(f64, i64)>)> {
    stage.rest().await?;
    let (topic, table) = (stage.topic().await?, Payload::Text.table());
    let name = format!("audit-{topic}");
    let payload = Payload::Text.toml();
    let relay = Relay { name: &name, table, topic: &topic, payload, window: WINDOW, shards: 1, lines: "" };
    let toml = format!("[audit]\nenabled = {is_audited}\n{}", relay.toml(&stage.near(), ANY));
    let last = format!("SELECT id::text FROM {table} ORDER BY created_at DESC, id DESC LIMIT 1");
    let last: String = owner.query_one(&last, &[]).await?.get(0);
    let arrived = "SELECT extract(epoch FROM advanced_at - created_at)::float8 FROM outbox.cursor WHERE name = $1 AND position_id = $2";
    let before = Spent::look(owner).await?;
    let mut process = Process::spawn(&toml, "r1")?;
    let begun = Instant::now();
    let seconds: f64 = loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        process.check()?;
        if let Some(row) = owner.query_opt(arrived, &[&name, &last]).await? {
            break row.get(0);
        }
        ensure!(begun.elapsed() < PATIENCE, "the backlog is not drained within {PATIENCE:?}:\n{}", process.log());
    };
    let (after, usage) = (Spent::look(owner).await?, process.usage()?);
    let spent = after.since(&before);
    let drained = Drained {
        rows_per_second: rows as f64 / seconds,
        cpu_s_per_million: (usage.cpu_s + spent.cpu_s) * 1e6 / rows as f64,
        wal_bytes_per_row: spent.wal as f64 / rows as f64,
    };
    let compared = if compares { Some(compare(owner, &mut process, rows, &name).await?) } else { None };
    process.stop().await?;
    stage.close(&topic, rows).await?;
    Ok((drained, compared))
}

/// Lets all slices of the cursor be due, and waits until each was compared.
async fn compare(owner: &Client, process: &mut Process, rows: u64, cursor: &str) -> anyhow::Result<(f64, i64)> {
    let count = "SELECT count(*), count(*) FILTER (WHERE checks > 0), COALESCE(sum(row_count), 0)::bigint FROM outbox.audit_slice \
                 WHERE cursor = $1";
    let (before, used) = (Spent::look(owner).await?, process.usage()?);
    owner.execute("UPDATE outbox.audit_slice SET check_at = now() WHERE cursor = $1", &[&cursor]).await?;
    let begun = Instant::now();
    let (slices, passed) = loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        process.check()?;
        let row = owner.query_one(count, &[&cursor]).await?;
        let (all, done, passed): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        ensure!(all > 0 && passed > 0, "no slice of {rows} rows was recorded");
        if all == done {
            break (all, passed);
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{done} of {all} slices are compared within {PATIENCE:?}:\n{}",
            process.log()
        );
    };
    let (spent, after) = (Spent::look(owner).await?.since(&before), process.usage()?);
    Ok(((after.cpu_s - used.cpu_s + spent.cpu_s) * 1e6 / passed as f64, slices))
}

fn tell(report: &mut Report, drains: &[Vec<Drained>; 2], rows: u64) {
    report.section(format!("audit: {} rows (text, 200 B), drained to Kafka", thousands(rows)));
    let [off, on] = drains;
    // Beside each other in the same round: what disturbs one disturbs the other.
    let pairs: Vec<_> = on.iter().zip(off).collect();
    let ratio = median(&each(&pairs, |(on, off)| on.rows_per_second / off.rows_per_second));
    for (what, drains) in [("without the audit", off), ("with it", on)] {
        let rates = each(drains, |drain| drain.rows_per_second);
        let cpu = median_of(drains, |drain| drain.cpu_s_per_million);
        let wal = median_of(drains, |drain| drain.wal_bytes_per_row);
        let mut note = format!("{cpu:.2} CPU s per million (relay and PostgreSQL), {wal:.2} B of WAL per row");
        if what == "with it" {
            note.push_str(&format!("; {ratio:.3} of that, {}", Goal::Least(RATIO).told(ratio)));
        }
        report.line(what, &rates, "rows/s", note);
        report.results.push(json!({"name": "audit", "what": what, "payload": "text", "payload_bytes": 200, "rows": rows, "cursors": 1,
            "replicas": 1, "rows_per_second": rounded(median(&rates)), "ratio": rounded(if what == "with it" { ratio } else { 1.0 }),
            "cpu_s_per_million": rounded(cpu), "wal_bytes_per_row": rounded(wal), "runs": runs(&rates)}));
    }
}
