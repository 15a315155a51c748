//! A backlog, drained by the real program: by the cursor's own times, or as a watcher of the topic sees it.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::payload::Payload;
use super::process::{ANY, Process, Relay, run};
use super::stage::{Stage, Way};
use super::watch::Watch;

const PATIENCE: Duration = Duration::from_secs(300);
/// As the relay has it by default.
const WINDOW: &str = "5ms";

/// One drain.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Rows a second, from the making of the cursor, just before its first turn, until it stands at the last row.
    pub rows_per_second: f64,
    /// Processor seconds of the relay's process for a million rows, from when the cursor is there.
    pub cpu_s_per_million: f64,
    /// The most memory it had.
    pub rss_max_bytes: u64,
}

/// Drains a table into a new topic through a new cursor.
pub async fn measure(stage: &Stage, way: &Way, payload: Payload, rows: u64) -> anyhow::Result<Drain> {
    drain(stage, way, payload, rows, ("", "")).await
}

/// The same with a configuration that has more `(before, behind)` the sink's keys.
pub async fn drain(
    stage: &Stage,
    way: &Way,
    payload: Payload,
    rows: u64,
    (before, behind): (&str, &str),
) -> anyhow::Result<Drain> {
    stage.rest().await?;
    let owner = stage.owner().await?;
    let topic = stage.topic().await?;
    let name = format!("drain-{topic}");
    let relay = Relay {
        name: &name,
        table: payload.table(),
        topic: &topic,
        payload: payload.toml(),
        window: WINDOW,
        shards: 1,
        lines: "",
    };
    let toml = format!("{before}{}{behind}", relay.toml(way, ANY));
    let last = format!("SELECT id::text FROM {} ORDER BY created_at DESC, id DESC LIMIT 1", payload.table());
    let last: String = owner.query_one(&last, &[]).await?.get(0);
    let cursor = owner
        .prepare(
            "SELECT position_id, extract(epoch FROM advanced_at - created_at)::float8 FROM outbox.cursor WHERE name = $1",
        )
        .await?;

    let mut process = Process::spawn(&toml, "r1")?;
    let (begun, mut before) = (Instant::now(), None);
    let seconds: f64 = loop {
        tokio::time::sleep(Duration::from_millis(if before.is_none() { 4 } else { 20 })).await;
        process.check()?;
        if let Some(row) = owner.query_opt(&cursor, &[&name]).await? {
            if before.is_none() {
                before = Some(process.usage()?.cpu_s);
            }
            if row.get::<_, Option<&str>>(0) == Some(last.as_str()) {
                break row.get(1);
            }
        }
        if begun.elapsed() > PATIENCE {
            bail!("the backlog is not drained within {PATIENCE:?}:\n{}", process.log());
        }
    };
    let usage = process.usage()?;
    process.stop().await?;
    stage.close(&topic, rows).await?;
    Ok(Drain {
        rows_per_second: rows as f64 / seconds,
        cpu_s_per_million: (usage.cpu_s - before.unwrap_or_default()) * 1e6 / rows as f64,
        rss_max_bytes: usage.rss_max_bytes,
    })
}

/// A drain as a watcher of the topic sees it.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// From the start of the process to the first record.
    pub first_s: f64,
    /// Rows a second, after the first ones.
    pub rows_per_second: f64,
    /// The most memory of the relay.
    pub rss_max_bytes: u64,
}

/// Drains a table of text payloads; before it starts, the cursor is made and `prepare` may do something to it.
pub async fn watch(
    stage: &Stage,
    table: &str,
    rows: u64,
    prepare: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Watched> {
    stage.rest().await?;
    let topic = stage.topic().await?;
    let name = format!("watched-{topic}");
    let relay = Relay {
        name: &name,
        table,
        topic: &topic,
        payload: Payload::Text.toml(),
        window: WINDOW,
        shards: 1,
        lines: "",
    };
    run(&relay.toml(&stage.near(), ANY), &["cursor", "create", &name, "--beginning"])?;
    prepare(&name).await?;
    let watch = Watch::start(stage, &topic)?;
    let begun = Instant::now();
    let mut process = Process::start(&stage.near(), &relay, "r1")?;
    while watch.records() < rows {
        tokio::time::sleep(Duration::from_millis(20)).await;
        process.check()?;
        if begun.elapsed() > PATIENCE {
            bail!("{} of {rows} rows have arrived within {PATIENCE:?}:\n{}", watch.records(), process.log());
        }
    }
    let (seen, usage) = (watch.stop()?, process.usage()?);
    process.stop().await?;
    stage.close(&topic, rows).await?;
    Ok(Watched {
        first_s: (seen.first - begun).as_secs_f64(),
        rows_per_second: seen.per_second(rows),
        rss_max_bytes: usage.rss_max_bytes,
    })
}
