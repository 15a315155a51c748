//! `verify`: how long it takes to compare a large table with its topic, id by id, and how much memory.
//!
//! The relay itself has filled the topic. What is equal is read once, what differs is looked for once more: so both are measured, the
//! second with rows that a cursor was moved over by hand.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::figure::{each, median, median_of, mib, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::{self, ANY, Process, Ran, Relay};
use super::report::{Goal, Report, thousands};
use super::spent::Spent;
use super::stage::Stage;

const TABLE: &str = "public.verified";
const WINDOW: &str = "5ms";
/// How long the topic may take to be filled.
const FILLED: Duration = Duration::from_secs(1_800);
/// How long a comparison may take, of many more rows than the goal is for.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// The goal, and for how many rows it is.
const SECONDS: f64 = 60.0;
const ROWS: f64 = 1e7;
const MEMORY_MIB: f64 = 100.0;
/// Rows that the topic lacks.
const MISSING: i32 = 100;

/// A comparison.
#[derive(Clone, Copy, Debug)]
struct Compared {
    /// As if the table had as many rows as the goal is for.
    seconds: f64,
    /// Of the program and of PostgreSQL, for a million rows.
    cpu_s_per_million: f64,
    rss_max_bytes: u64,
}

/// Fills table and topic, and compares them.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (owner, rows, topic) = (stage.owner().await?, options.verified, stage.topic().await?);
    options.say(&format!("verify: filling {} rows", thousands(rows)));
    stage.table(TABLE).await?;
    stage.fill_table(TABLE, Payload::Text.column_bytes(), rows).await?;
    let name = format!("verify-{topic}");
    let payload = Payload::Text.toml();
    let relay = Relay { name: &name, table: TABLE, topic: &topic, payload, window: WINDOW, shards: 1, lines: "" };
    let toml = relay.toml(&stage.near(), ANY);
    options.say("verify: relaying them");
    relayed(&owner, &toml, &name).await?;
    let (mut equal, mut different) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        options.say(&format!("verify {round}/{}", options.rounds));
        equal.push(compare(stage, &owner, &toml, (name.as_str(), rows), 0).await?);
    }
    pass_over(&owner, &name).await?;
    for round in 1..=options.rounds {
        options.say(&format!("verify {round}/{}, {MISSING} rows missing", options.rounds));
        different.push(compare(stage, &owner, &toml, (name.as_str(), rows), MISSING).await?);
    }
    stage.close(&topic, rows).await?;
    owner.batch_execute(&format!("DROP TABLE {TABLE}")).await?;
    tell(report, &[(0, equal), (MISSING, different)], rows);
    Ok(())
}

/// Has a relay publish the table.
async fn relayed(owner: &Client, toml: &str, cursor: &str) -> anyhow::Result<()> {
    let last = format!("SELECT id::text FROM {TABLE} ORDER BY created_at DESC, id DESC LIMIT 1");
    let last: String = owner.query_one(&last, &[]).await?.get(0);
    let arrived = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE name = $1 AND position_id = $2)";
    let mut process = Process::spawn(toml, "r1")?;
    let is_filled = async || Ok(owner.query_one(arrived, &[&cursor, &last]).await?.get::<_, bool>(0));
    process.until(FILLED, "the topic is filled", is_filled).await?;
    process.stop().await
}

/// Moves the cursor over further rows, as if they had been published.
async fn pass_over(owner: &Client, cursor: &str) -> anyhow::Result<()> {
    let insert = format!("INSERT INTO {TABLE} (customer, payload) SELECT 'c', 'p' FROM generate_series(1, $1::int)");
    owner.execute(&insert, &[&MISSING]).await?;
    let moved = format!(
        "UPDATE outbox.cursor SET (position_created_at, position_id) = \
         (SELECT created_at, id::text FROM {TABLE} ORDER BY created_at DESC, id DESC LIMIT 1) WHERE name = $1"
    );
    ensure!(owner.execute(&moved, &[&cursor]).await? == 1, "there is no cursor {cursor}");
    Ok(())
}

/// Compares once; so many rows are to be missing.
async fn compare(
    stage: &Stage,
    owner: &Client,
    toml: &str,
    (cursor, rows): (&str, u64),
    missing: i32,
) -> anyhow::Result<Compared> {
    stage.rest().await?;
    let before = Spent::look(owner).await?;
    let verb = ["verify", cursor, "--since", "1d", "-o", "json", "--limit", "1000"];
    let Ran { code, seconds, usage, out, told } = process::watch(toml, &verb, PATIENCE).await?;
    let spent = Spent::look(owner).await?.since(&before);
    let document: Value = serde_json::from_str(&out).with_context(|| format!("verify ({code:?}) says: {out}{told}"))?;
    let found = document["differences"].as_array().map_or(0, Vec::len);
    let expected = if missing == 0 { Some(0) } else { Some(3) };
    ensure!(
        code == expected && i32::try_from(found)? == missing,
        "verify ({code:?}) finds {found} differences: {told}"
    );
    ensure!(document["rows"]["topic"] == json!(rows), "verify has read {} records", document["rows"]["topic"]);
    let millions = rows as f64 / 1e6;
    Ok(Compared {
        seconds: seconds * ROWS / rows as f64,
        cpu_s_per_million: (usage.cpu_s + spent.cpu_s) / millions,
        rss_max_bytes: usage.rss_max_bytes,
    })
}

fn tell(report: &mut Report, measured: &[(i32, Vec<Compared>)], rows: u64) {
    report.section(format!("verify: {} rows (text, 200 B) with their topic, id by id", thousands(rows)));
    for (missing, compared) in measured {
        let what = if *missing == 0 { "equal".to_owned() } else { format!("{missing} rows missing") };
        let seconds = each(compared, |one| one.seconds);
        let cpu = median_of(compared, |one| one.cpu_s_per_million);
        let memory = compared.iter().map(|one| one.rss_max_bytes).max().unwrap_or(0);
        let mut note = format!("{cpu:.2} CPU s per million (verify and PostgreSQL)");
        if *missing == 0 {
            note.push_str(&format!("; {}", Goal::Most(SECONDS).told(median(&seconds))));
        }
        report.line(&format!("{what}, for 10 million rows"), &seconds, "s", note);
        report.judged(&format!("{what}, memory at most"), &[mib(memory)], "MiB", Goal::Most(MEMORY_MIB));
        report.results.push(json!({"name": "verify", "what": what, "payload": "text", "payload_bytes": 200, "rows": rows,
            "seconds_of_10_million": rounded(median(&seconds)), "cpu_s_per_million": rounded(cpu), "rss_max_bytes": memory,
            "runs": runs(&seconds)}));
    }
}
