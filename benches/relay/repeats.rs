//! How many rows come again when a replica is killed in the midst of a backlog, at full rate.

use std::time::{Duration, Instant};

use anyhow::bail;
use outbox_testkit::kafka::delete_topic;
use serde_json::json;
use tokio_postgres::Client;

use super::figure::{median, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::report::{Goal, Report, thousands};
use super::stage::Stage;

/// As many as one turn of the default size.
const MOST: f64 = 20_000.0;
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures and tells.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rows = options.rows(Payload::Text);
    options.say(&format!("repeats: filling {} rows", thousands(rows)));
    stage.fill(Payload::Text, rows).await?;
    let owner = stage.owner().await?;
    let mut repeated = Vec::new();
    for round in 0..options.kills {
        // Somewhere in the middle half.
        let at = rows / 4 + rows / 2 * round as u64 / options.kills as u64;
        repeated.push(kill(stage, &owner, rows, at).await? as f64);
    }
    report.section("rows that come again after SIGKILL at full rate (text, 200 B)");
    let highest = repeated.iter().copied().fold(0.0, f64::max);
    report.line("rows repeated", &repeated, "rows", format!("each: {}", Goal::Most(MOST).told(highest)));
    report.results.push(json!({"name": "repeats", "payload": "text", "payload_bytes": 200, "rows": rows, "cursors": 1,
        "replicas": 1, "repeated_rows": rounded(median(&repeated)), "runs": runs(&repeated)}));
    Ok(())
}

/// Kills a replica when so many rows have arrived, and lets another do the rest; how many records there are too many.
async fn kill(stage: &Stage, owner: &Client, rows: u64, at: u64) -> anyhow::Result<usize> {
    stage.rest().await?;
    let topic = stage.topic().await?;
    let name = format!("repeats-{topic}");
    let relay = Relay {
        name: &name,
        table: Payload::Text.table(),
        topic: &topic,
        payload: Payload::Text.toml(),
        window: "5ms",
        shards: 1,
        lines: "",
    };
    let begun = Instant::now();
    let mut process = Process::start(&stage.near(), &relay, "r1")?;
    while (stage.records(&topic)? as u64) < at {
        process.check()?;
        if begun.elapsed() > PATIENCE {
            bail!("{} of {at} rows have arrived within {PATIENCE:?}:\n{}", stage.records(&topic)?, process.log());
        }
    }
    process.kill9()?;
    let mut heir = Process::start(&stage.near(), &relay, "r2")?;
    let done = format!(
        "SELECT c.position_id = (SELECT id::text FROM {} ORDER BY created_at DESC, id DESC LIMIT 1) FROM outbox.cursor AS c WHERE name = $1",
        Payload::Text.table()
    );
    let is_drained = async || Ok(owner.query_one(&done, &[&name]).await?.get::<_, Option<bool>>(0) == Some(true));
    heir.until(PATIENCE, "the backlog is drained", is_drained).await?;
    heir.stop().await?;
    let records = stage.records(&topic)?;
    let Some(repeated) = records.checked_sub(usize::try_from(rows)?) else {
        bail!("{records} of {rows} rows have arrived");
    };
    delete_topic(&stage.near().servers, &topic).await?;
    Ok(repeated)
}
