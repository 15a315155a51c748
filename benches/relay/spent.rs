//! What the whole PostgreSQL cluster has used so far.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use outbox_testkit::wait;
use tokio_postgres::Client;

use super::process::TICKS;

/// PostgreSQL itself writes a record of running transactions 15 seconds after the last change, or 10 later when its background
/// writer rests (`bgwriter.c`): without changes for longer there is none to come.
const QUIET: Duration = Duration::from_secs(26);
/// After this much time somebody writes all the time, which is then what is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// A record is flushed this long after it was written, at the latest.
const FLUSHED: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Transaction ids.
    pub transaction_ids: i64,
    /// Where the WAL ends, or by how much it has grown.
    pub wal: i64,
    /// Processor seconds of all its processes.
    pub cpu_s: f64,
}

impl Spent {
    /// Looks; that uses no transaction id.
    pub async fn look(owner: &Client) -> anyhow::Result<Self> {
        let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = owner.query_one(sql, &[]).await?;
        Ok(Self { transaction_ids: row.get(0), wal: row.get(1), cpu_s: processor_s(owner).await? })
    }

    /// Waits until nothing is written any more.
    pub async fn settle(owner: &Client) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (mut wal, mut since) = (Self::look(owner).await?.wal, Instant::now());
        while since.elapsed() < QUIET && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = Self::look(owner).await?.wal;
            if now != wal {
                (wal, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// What has come since an earlier look.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            transaction_ids: self.transaction_ids - before.transaction_ids,
            wal: self.wal - before.wal,
            cpu_s: self.cpu_s - before.cpu_s,
        }
    }

    /// The bytes of WAL between an earlier look and this one, but for the records of running transactions that PostgreSQL's
    /// background writer makes of its own accord. The server must have pg_walinspect (15 or newer).
    pub async fn wal_bytes(&self, owner: &Client, before: &Self) -> anyhow::Result<i64> {
        if self.wal == before.wal {
            return Ok(0);
        }
        let flushed = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint >= $1";
        let is_flushed = async || Ok(owner.query_one(flushed, &[&self.wal]).await?.get::<_, bool>(0));
        wait::until(FLUSHED, "the WAL is flushed", is_flushed).await?;
        let sql = "SELECT COALESCE(sum(record_length), 0)::bigint FROM pg_get_wal_records_info('0/0'::pg_lsn + $1::bigint::numeric, \
            '0/0'::pg_lsn + $2::bigint::numeric) WHERE (resource_manager, record_type) <> ('Standby', 'RUNNING_XACTS')";
        Ok(owner.query_one(sql, &[&before.wal, &self.wal]).await.context("pg_walinspect")?.get(0))
    }
}

/// Processor seconds of PostgreSQL: of its first process, of those that this has waited for, and of those that run.
async fn processor_s(owner: &Client) -> anyhow::Result<f64> {
    let backend: i32 = owner.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
    let [first, ..] = stat(backend).context("this connection's process")?;
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // One that has ended meanwhile is among those that were waited for.
        let Some([parent, own, waited]) = stat(pid) else { continue };
        if i64::from(pid) == first {
            ticks += own + waited;
        } else if parent == first {
            ticks += own;
        }
    }
    Ok(ticks as f64 / TICKS)
}

/// The parent, the ticks of a process, and those of the children that it has waited for.
fn stat(pid: i32) -> Option<[i64; 3]> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which ends with the last parenthesis, come state (field 3) and the others: 4 is the parent, 14 to 17 are ticks.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
    Some([field(4)?, field(14)? + field(15)?, field(16)? + field(17)?])
}
