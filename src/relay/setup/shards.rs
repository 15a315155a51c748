//! Whether a relay's shards can be read, and whether no other cursors read the same rows.

use crate::cursor;
use crate::database::{Error, Session};
use crate::relay::Config;
use crate::relay::engine::not_ready::Unready;
use crate::source::finding::{Finding, Level};
use crate::source::shard::{index, key};
use crate::source::table::{self, InspectError, Table};
use crate::source::{self, Stream};

/// What is wrong with reading this relay's table by shards.
pub(in crate::relay) async fn findings(
    session: &Session,
    relay: &Config,
    table: &Table,
    stream: &Stream,
) -> Result<Vec<Finding>, Error> {
    let Some(shard) = &relay.shard else { return Ok(Vec::new()) };
    let indexes = index::read(session, table).await?;
    let mut findings = index::judge(table, &indexes, stream, shard);
    if findings.is_empty() {
        let message = format!("{} shards by {}, read by an index", shard.of, shard.key);
        findings.push(Finding::new(Level::Ok, "shards", message));
    }
    findings.extend(key::judge(&key::read(session, table, shard).await?, stream, shard));
    Ok(findings)
}

/// Whether this cursor's shard can be read by an index; any other plan would read the rows of all shards.
pub(in crate::relay) async fn readable(session: &Session, config: &Config) -> Result<Result<(), Unready>, Error> {
    let (Some(_), source::Config::Stream(stream)) = (&config.shard, &config.source) else { return Ok(Ok(())) };
    let table = match table::inspect(session, stream).await {
        Ok(table) => table,
        Err(InspectError::Database(error)) => return Err(error),
        Err(error) => return Ok(Err(Unready::first(error.findings()))),
    };
    let findings = findings(session, config, &table, stream).await?;
    let wrong = findings.iter().any(|finding| finding.level == Level::Error);
    Ok(if wrong { Err(Unready::first(findings)) } else { Ok(()) })
}

/// Whether no cursor of another number of shards reads the relay's rows.
pub(in crate::relay) async fn alone(
    session: &Session,
    config: &Config,
    identity: &str,
) -> Result<Result<(), Unready>, Error> {
    let strangers = cursor::shards::strangers(session, &config.relay, identity).await?;
    Ok(match strangers.first() {
        None => Ok(()),
        Some(other) => Err(Unready::other_shards(&config.relay, &other.name, &other.identity, identity)),
    })
}
