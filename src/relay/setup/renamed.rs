//! A relay without a cursor, and a cursor without a relay: has the relay another name than before?
//!
//! A new cursor beside the old one would skip rows under `start = "now"`, and otherwise send rows that were sent again. So `run` does
//! not create it, and `check` reports an error, until an operator has decided.

use crate::cursor::liveness;
use crate::database::{Error, Session};
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::{RENAMED, Unready};
use crate::source;

/// A relay that is not configured here and has a cursor of the same identity, whatever its shards.
#[derive(Debug)]
pub(in crate::relay) struct Twin {
    /// Its name.
    pub(in crate::relay) relay: String,
    /// A live replica that has it.
    replica: Option<String>,
}

/// Such relays; none when the relay itself has a cursor, or does not read a table of the application.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn twins(
    session: &Session,
    config: &Config,
    configured: &[String],
    identity: &str,
) -> Result<Vec<Twin>, Error> {
    if !matches!(config.source, source::Config::Stream(_) | source::Config::Pending(_)) {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT c.relay, pg_catalog.min((SELECT pg_catalog.min(r.id) FROM outbox.replica AS r \
         CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(r.relays) AS e \
         WHERE r.stopped_at IS NULL AND pg_catalog.split_part(e ->> 'name', '#', 1) = c.relay AND {})) AS replica \
         FROM outbox.cursor AS c WHERE c.relay <> ALL ($1) AND c.relay <> $3 \
         AND c.identity - 'shards' - 'shard_key' = $2::text::jsonb - 'shards' - 'shard_key' \
         AND NOT EXISTS (SELECT FROM outbox.cursor AS o WHERE o.relay = $3) \
         GROUP BY c.relay ORDER BY replica NULLS FIRST, c.relay",
        liveness::is_live("r")
    );
    let rows = session.query(&sql, &[&configured, &identity, &config.relay]).await?;
    rows.iter().map(|row| Ok(Twin { relay: row.try_get(0)?, replica: row.try_get(1)? })).collect()
}

/// Why the relay's cursor may not be created, if it may not.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn refusal(
    engine: &Engine,
    session: &Session,
    config: &Config,
    identity: &str,
) -> Result<Option<Unready>, Error> {
    let twins = twins(session, config, &engine.configured, identity).await?;
    Ok(twins.first().map(|twin| {
        let (relay, same, old) = (&config.relay, same(config), &twin.relay);
        let has = match &twin.replica {
            Some(replica) => {
                format!("replica {replica} still runs relay {old}, which this configuration does not have")
            }
            None => "no replica has its relay".to_owned(),
        };
        let message = format!("no cursor {relay}; cursor {old} has the same {same}, and {has}: was the relay renamed?");
        Unready::wrong(RENAMED, message, hint(config, twin))
    }))
}

/// What the two cursors have in common.
pub(in crate::relay) fn same(config: &Config) -> &'static str {
    match (&config.source, config.sink.kind()) {
        (source::Config::Stream(_), "kafka") => "table and topic",
        (source::Config::Stream(_), _) => "table and target",
        _ => "table",
    }
}

/// The commands that decide it.
pub(in crate::relay) fn hint(config: &Config, twin: &Twin) -> String {
    let (relay, Twin { relay: old, replica }) = (&config.relay, twin);
    let begins = match config.source {
        source::Config::Stream(_) => format!("`outbox-relay cursor create {relay} --now`, or --beginning"),
        _ => format!("`outbox-relay cursor create {relay} --beginning`"),
    };
    let stop =
        if replica.is_some() { format!("stop the replicas that have relay {old}, then ") } else { String::new() };
    format!("If it was renamed: {stop}`outbox-relay cursor rename {old} {relay}`; if it is new: {begins}.")
}
