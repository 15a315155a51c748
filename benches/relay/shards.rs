//! `shards`: one relay's rows shared by four cursors on two replicas, beside one cursor on one.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;

use super::drain;
use super::figure::{each, median, mib, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::{ANY, Process, Relay, Usage, run};
use super::report::{Goal, Report};
use super::stage::{Stage, Way};
use super::watch::Watch;

const SHARDS: u32 = 4;
const REPLICAS: usize = 2;
const ROUNDS: usize = 2;
const RATIO: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(300);

/// One drain.
#[derive(Clone, Copy, Debug)]
struct Shared {
    rows_per_second: f64,
    /// Of all replicas, from the first records on.
    cpu_s_per_million: f64,
    /// Of one replica.
    rss_max_bytes: u64,
}

/// Drains with one cursor and with shards, in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rows = options.rows(Payload::Text);
    stage.fill(Payload::Text, rows).await?;
    let (mut single, mut shared) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        options.say(&format!("shards {round}/{ROUNDS}"));
        let one = drain::watch(stage, Payload::Text.table(), rows, async |_| Ok(())).await?;
        single.push(one.rows_per_second);
        shared.push(drain_shared(stage, rows).await?);
    }
    let rates = each(&shared, |drain| drain.rows_per_second);
    let cpu = each(&shared, |drain| drain.cpu_s_per_million);
    let memory = shared.iter().map(|drain| drain.rss_max_bytes).max().unwrap_or(0);
    let ratio = median(&rates) / median(&single);
    report.section(format!("{SHARDS} shards on {REPLICAS} replicas (text, 200 B), by a watcher of the topic"));
    report.line("relay, one cursor", &single, "rows/s", "");
    let note = format!("{ratio:.2} of that; {}", Goal::Least(RATIO).told(ratio));
    report.line("relay, shards", &rates, "rows/s", note);
    report.line("relay, shards, processor", &cpu, "s per million", "all replicas");
    report.line("memory at most, per replica", &[mib(memory)], "MiB", "");
    report.results.push(
        json!({"name": "shards", "payload": "text", "payload_bytes": 200, "rows": rows, "shards": SHARDS,
        "cursors": SHARDS, "replicas": REPLICAS, "rows_per_second": rounded(median(&rates)), "ratio": rounded(ratio),
        "cpu_s_per_million": rounded(median(&cpu)), "rss_max_bytes": memory, "runs": runs(&rates)}),
    );
    Ok(())
}

async fn drain_shared(stage: &Stage, rows: u64) -> anyhow::Result<Shared> {
    let topic = stage.topic().await?;
    let name = format!("shared-{topic}");
    let relay = Relay {
        name: &name,
        table: Payload::Text.table(),
        topic: &topic,
        payload: Payload::Text.toml(),
        window: "5ms",
        shards: SHARDS,
        lines: "",
    };
    let owner = Way { url: stage.owner_url(), ..stage.near() };
    run(&relay.toml(&owner, ANY), &["migrate", "up", "--indexes"])?;
    stage.rest().await?;
    let watch = Watch::start(stage, &topic)?;
    let toml = relay.toml(&stage.near(), ANY);
    let started = (0..REPLICAS).map(|number| Process::spawn(&toml, &format!("shard{number}")));
    let mut replicas = started.collect::<anyhow::Result<Vec<_>>>()?;
    let (begun, mut before) = (Instant::now(), None);
    while watch.records() < rows {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if before.is_none() && watch.records() > 0 {
            before = Some(cpu_s(&usages(&replicas)?));
        }
        replicas.iter_mut().try_for_each(Process::check)?;
        if begun.elapsed() > PATIENCE {
            bail!("{} of {rows} rows have arrived within {PATIENCE:?}:\n{}", watch.records(), replicas[0].log());
        }
    }
    let (seen, after) = (watch.stop()?, usages(&replicas)?);
    for replica in replicas {
        replica.stop().await?;
    }
    stage.close(&topic, rows).await?;
    Ok(Shared {
        rows_per_second: seen.per_second(rows),
        cpu_s_per_million: (cpu_s(&after) - before.unwrap_or_default()) * 1e6 / rows as f64,
        rss_max_bytes: after.iter().map(|usage| usage.rss_max_bytes).max().unwrap_or(0),
    })
}

fn usages(replicas: &[Process]) -> anyhow::Result<Vec<Usage>> {
    replicas.iter().map(Process::usage).collect()
}

fn cpu_s(usages: &[Usage]) -> f64 {
    usages.iter().map(|usage| usage.cpu_s).sum()
}
