//! `relay`: a backlog, drained by the real program.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::payload::Payload;
use super::process::{Process, Relay};
use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(120);

/// One drain.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Rows a second, from the making of the cursor, just before its first turn, until it stands at the last row.
    pub rows_per_second: f64,
    /// Processor seconds of the relay's process for a million rows, its start included.
    pub cpu_s_per_million: f64,
    /// The most memory it had.
    pub rss_max_bytes: u64,
}

/// Drains the table into a new topic through a new cursor.
pub async fn measure(stage: &Stage, payload: Payload, rows: u64, round: usize) -> anyhow::Result<Drain> {
    let owner = stage.owner().await?;
    let topic = stage.topic().await?;
    let name = format!("drain-{}-{round}", payload.name());
    let relay = Relay { name: &name, table: payload.table(), topic: &topic, payload: payload.toml() };
    let last = format!("SELECT id::text FROM {} ORDER BY created_at DESC, id DESC LIMIT 1", payload.table());
    let last: String = owner.query_one(&last, &[]).await?.get(0);
    let cursor = owner
        .prepare(
            "SELECT position_id, extract(epoch FROM advanced_at - created_at)::float8 FROM outbox.cursor WHERE name = $1",
        )
        .await?;

    let mut process = Process::start(stage, &relay, "r1")?;
    let begun = Instant::now();
    let seconds: f64 = loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        process.check()?;
        if let Some(row) = owner.query_opt(&cursor, &[&name]).await?
            && row.get::<_, Option<&str>>(0) == Some(last.as_str())
        {
            break row.get(1);
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
        cpu_s_per_million: usage.cpu_s * 1e6 / rows as f64,
        rss_max_bytes: usage.rss_max_bytes,
    })
}
