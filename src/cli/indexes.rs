//! `outbox-relay migrate up --indexes`: the indexes that relays with shards read by, on the application's tables.

use std::time::Duration;

use anyhow::Context as _;

use super::output::{complain, print};
use crate::config::Config;
use crate::database::{PATIENT, Session};
use crate::source::shard::Shard;
use crate::source::shard::index::{self, Missing};
use crate::source::table::{self, Table};
use crate::source::{self, Stream};

/// How often the progress of a build is looked at.
const LOOK: Duration = Duration::from_secs(1);

const PROGRESS: &str = include_str!("sql/indexes_progress.sql");

/// Who is building an index of this name now.
const BUILDER: &str = include_str!("sql/indexes_builder.sql");

/// Makes what is missing, one after the other.
pub(super) async fn make(config: &Config) -> anyhow::Result<()> {
    let session = super::session(config, "migrate").await?;
    // A build takes as long as it takes, and waits for every older transaction.
    session.execute(PATIENT, &[]).await?;
    let mut some = false;
    for relay in config.relays.iter().filter(|relay| relay.is_first_shard()) {
        let (Some(shard), source::Config::Stream(stream)) = (&relay.shard, &relay.source) else { continue };
        some = true;
        let (table, missing) = look(&session, stream, shard).await?;
        if missing.is_empty() {
            print(&format!("relay {}: the index for its {} shards is there\n", relay.relay, shard.of))?;
        }
        for index in missing {
            build(config, &session, &table, &index).await?;
        }
        let (_, left) = look(&session, stream, shard).await?;
        anyhow::ensure!(
            left.is_empty(),
            "relay {}: the index is made and not fit: `outbox-relay check` says why",
            relay.relay
        );
    }
    if !some {
        print("no relay has shards: no index is needed\n")?;
    }
    Ok(())
}

/// The table, and the indexes that it lacks.
async fn look(session: &Session, stream: &Stream, shard: &Shard) -> anyhow::Result<(Table, Vec<Missing>)> {
    let table = table::inspect(session, stream).await?;
    let indexes = index::read(session, &table).await?;
    let wrong = index::judge(&table, &indexes, stream, shard).into_iter().find(|finding| finding.fix_sql.is_none());
    if let Some(finding) = wrong {
        anyhow::bail!("{}. {}", finding.message, finding.fix_setting.unwrap_or_default());
    }
    let missing = index::missing(&table, &indexes, stream, shard);
    Ok((table, missing))
}

async fn build(config: &Config, session: &Session, table: &Table, index: &Missing) -> anyhow::Result<()> {
    if let Some(invalid) = &index.invalid {
        if let Some(row) = session.query_opt(BUILDER, &[invalid]).await? {
            let pid: i32 = row.try_get(0)?;
            anyhow::bail!("{invalid} is being built by pid {pid}: wait for its end");
        }
        complain(format_args!("{invalid} is left of a build that failed: it is dropped first"));
    }
    if table.kind == "p" {
        complain(format_args!("{} is partitioned: its writers wait while the index is built", index.relation));
    }
    for sql in &index.statements {
        print(&format!("{sql}\n"))?;
        let watching = watch(config, session.pid);
        tokio::select! {
            // Each on its own: CONCURRENTLY is refused in a transaction.
            done = session.batch_execute(sql) => done.context("the index was not made; run this again")?,
            failed = watching => return failed,
        }
    }
    Ok(())
}

/// Tells how far the build of this session is; ends only with an error.
async fn watch(config: &Config, pid: i32) -> anyhow::Result<()> {
    let session = super::session(config, "migrate").await?;
    let mut told = String::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(row) = session.query_opt(PROGRESS, &[&pid]).await? else { continue };
        let (phase, done, total): (String, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let now = if total > 0 { format!("{phase}: {done} of {total} blocks") } else { phase };
        if now != told {
            complain(&now);
            told = now;
        }
    }
}
