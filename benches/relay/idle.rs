//! `idle`: what a relay that has nothing to do costs.

use std::time::Duration;

use serde_json::json;

use super::figure::{mib, rounded};
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::report::{Goal, Report};
use super::spent::Spent;
use super::stage::{QUIET, Stage};

const PERCENT: f64 = 0.5;
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches a relay whose only row has been relayed.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let topic = stage.topic().await?;
    let relay = Relay {
        name: "idle",
        table: QUIET,
        topic: &topic,
        payload: Payload::Text.toml(),
        window: "5ms",
        shards: 1,
        lines: "",
    };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("INSERT INTO {QUIET} (customer, payload) VALUES ('c', 'x'); CHECKPOINT")).await?;
    let mut process = Process::start(&stage.near(), &relay, "r1")?;
    options.say("idle");
    process.until(PATIENCE, "the only row has arrived", async || Ok(stage.records(&topic)? > 0)).await?;
    Spent::settle(&owner).await?;
    process.check()?;
    let (cluster, before) = (Spent::look(&owner).await?, process.usage()?);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let (after, ended) = (process.usage()?, Spent::look(&owner).await?);
    let (spent, wal_bytes) = (ended.since(&cluster), ended.wal_bytes(&owner, &cluster).await?);
    process.stop().await?;
    stage.close(&topic, 1).await?;

    let (seconds, cpu_s) = (options.seconds, after.cpu_s - before.cpu_s);
    let percent = cpu_s * 100.0 / seconds as f64;
    report.section(format!("idle for {seconds} s"));
    report.judged("processor", &[percent], "% of a core", Goal::Most(PERCENT));
    report.judged("transaction ids", &[spent.transaction_ids as f64], "", Goal::Most(0.0));
    report.judged("WAL but the server's own RUNNING_XACTS", &[wal_bytes as f64], "bytes", Goal::Most(0.0));
    report.line("memory at most", &[mib(after.rss_max_bytes)], "MiB", "");
    report.results.push(json!({"name": "idle", "cursors": 1, "replicas": 1, "rss_max_bytes": after.rss_max_bytes,
        "cpu_percent": rounded(percent), "runs": [{"seconds": seconds, "transaction_ids": spent.transaction_ids,
            "wal_bytes": wal_bytes, "cpu_s": rounded(cpu_s)}]}));
    Ok(())
}
