//! `idle`: what a relay that has nothing to do costs.

use std::time::Duration;

use tokio_postgres::Client;

use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay};
use super::stage::{QUIET, Stage};

/// PostgreSQL itself writes a record of running transactions 15 seconds after the last change: it must not be counted.
const SETTLE: Duration = Duration::from_secs(18);

/// What it used in `seconds`.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// How long it was watched.
    pub seconds: u64,
    /// Transaction ids that were used up in the whole cluster.
    pub transaction_ids: i64,
    /// Bytes of WAL that the whole cluster wrote.
    pub wal_bytes: i64,
    /// Processor seconds of the relay.
    pub cpu_s: f64,
    /// The most memory it has had.
    pub rss_max_bytes: u64,
}

/// Watches a relay whose only row has been relayed.
pub async fn measure(stage: &Stage, options: &Options) -> anyhow::Result<Idle> {
    let topic = stage.topic().await?;
    let relay = Relay { name: "idle", table: QUIET, topic: &topic, payload: Payload::Text.toml() };
    let owner = stage.owner().await?;
    owner.batch_execute(&format!("INSERT INTO {QUIET} (customer, payload) VALUES ('c', 'x'); CHECKPOINT")).await?;
    let mut process = Process::start(stage, &relay, "r1")?;
    tokio::time::sleep(SETTLE).await;
    process.check()?;
    let (ids, wal, before) = (ids(&owner).await?, wal(&owner).await?, process.usage()?);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let after = process.usage()?;
    let idle = Idle {
        seconds: options.seconds,
        transaction_ids: self::ids(&owner).await? - ids,
        wal_bytes: self::wal(&owner).await? - wal,
        cpu_s: after.cpu_s - before.cpu_s,
        rss_max_bytes: after.rss_max_bytes,
    };
    process.stop().await?;
    stage.close(&topic, 1).await?;
    Ok(idle)
}

/// The next transaction id; asking uses none.
async fn ids(owner: &Client) -> anyhow::Result<i64> {
    let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    Ok(owner.query_one(sql, &[]).await?.get(0))
}

/// The bytes of WAL so far.
async fn wal(owner: &Client) -> anyhow::Result<i64> {
    Ok(owner.query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[]).await?.get(0))
}
