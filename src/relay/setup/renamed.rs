//! A relay without a cursor, and a cursor without a relay: has the relay another name than before?
//!
//! A new cursor beside the old one would skip rows under `start = "now"`, and otherwise send rows that were sent again; schedules
//! and requests under the old name would never be taken up. So `run` does not create it, and `check` reports an error, until an
//! operator has decided.
//!
//! Streams and pending rows are known by their table and target. Schedules and requests of all deployments stand in one table each,
//! and say nothing of the target. A relay of requests is known by the templates that the old name owns. A relay of schedules is
//! asked about only while the old name has some that wait, and no live replica has it with another configuration: that is a second
//! deployment, with schedules of its own.

use crate::cursor::liveness;
use crate::cursor::open_work::open_work;
use crate::database::{Error, Session, quote_literal};
use crate::jobs::ledger;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::config_hash;
use crate::relay::engine::not_ready::{RENAMED, Unready};
use crate::source;

/// A relay that is not configured here and has a cursor of the same identity, whatever its shards.
#[derive(Debug)]
pub(in crate::relay) struct Twin {
    /// Its name.
    pub(in crate::relay) relay: String,
    /// What links the two, after "has".
    pub(in crate::relay) has: String,
    /// A live replica that has it.
    replica: Option<String>,
    /// The configurations with which live replicas have it.
    hashes: Vec<String>,
    /// Schedules stand under the new name, too: a rename refuses that.
    both: bool,
}

/// Such relays; none when the relay itself has a cursor.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn twins(
    session: &Session,
    config: &Config,
    configured: &[String],
    identity: &str,
) -> Result<Vec<Twin>, Error> {
    let sql = format!(
        "WITH live AS MATERIALIZED (SELECT r.id, pg_catalog.split_part(e ->> 'name', '#', 1) AS relay, \
         COALESCE(e ->> 'config_hash', '') AS config_hash \
         FROM outbox.replica AS r CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(r.relays) AS e \
         WHERE r.stopped_at IS NULL AND {}) \
         SELECT c.relay, (SELECT pg_catalog.min(l.id) FROM live AS l WHERE l.relay = c.relay) AS replica, \
         ARRAY(SELECT l.config_hash FROM live AS l WHERE l.relay = c.relay) \
         FROM (SELECT DISTINCT o.relay FROM outbox.cursor AS o WHERE o.relay <> ALL ($1) AND o.relay <> $3 \
         AND o.identity - 'shards' - 'shard_key' = $2::text::jsonb - 'shards' - 'shard_key') AS c \
         WHERE NOT EXISTS (SELECT FROM outbox.cursor AS o WHERE o.relay = $3) ORDER BY replica NULLS FIRST, c.relay",
        liveness::is_live("r")
    );
    let rows = session.query(&sql, &[&configured, &identity, &config.relay]).await?;
    let twin = |row: &tokio_postgres::Row| {
        Ok(Twin {
            relay: row.try_get(0)?,
            replica: row.try_get(1)?,
            hashes: row.try_get(2)?,
            has: String::new(),
            both: false,
        })
    };
    let twins = rows.iter().map(twin).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    linked(session, config, twins).await
}

/// Those of them that this relay may have been.
async fn linked(session: &Session, config: &Config, twins: Vec<Twin>) -> Result<Vec<Twin>, Error> {
    let relays: Vec<&str> = twins.iter().map(|twin| twin.relay.as_str()).collect();
    match (&config.source, config.sink.kind()) {
        (source::Config::Stream(_), "kafka") => Ok(all(twins, "the same table and topic")),
        (source::Config::Stream(_), _) => Ok(all(twins, "the same table and target")),
        (source::Config::Pending(_), _) => Ok(all(twins, "the same table")),
        (source::Config::Requests(requests), _) => {
            let sql = include_str!("sql/renamed_templates.sql");
            let rows = session.query(sql, &[&relays, &requests.templates]).await?;
            let shared = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            let shared =
                shared.collect::<Result<std::collections::BTreeMap<String, String>, tokio_postgres::Error>>()?;
            Ok(having(twins, |twin| shared.get(&twin.relay).cloned()))
        }
        (source::Config::Schedule(_), _) => {
            let own = config.relay.as_str();
            let open = open_work(session, &[&relays[..], &[own]].concat()).await?;
            let hash = config_hash::of(config).ok();
            let may_be = |twin: &Twin| twin.replica.is_none() || twin.hashes.iter().any(|of| Some(of) == hash.as_ref());
            let has = |twin: &Twin| {
                let open = open.get(&twin.relay).filter(|_| may_be(twin))?;
                Some(format!("{open} that {}", open.wait()))
            };
            let both = open.contains_key(own);
            Ok(having(twins, has).into_iter().map(|twin| Twin { both, ..twin }).collect())
        }
    }
}

fn all(twins: Vec<Twin>, has: &str) -> Vec<Twin> {
    having(twins, |_| Some(has.to_owned()))
}

fn having(twins: Vec<Twin>, has: impl Fn(&Twin) -> Option<String>) -> Vec<Twin> {
    twins.into_iter().filter_map(|twin| has(&twin).map(|has| Twin { has, ..twin })).collect()
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
    Ok(twins.first().map(|twin| Unready::wrong(RENAMED, message(config, twin), hint(config, twin))))
}

/// What speaks for a rename, and the question.
fn message(config: &Config, twin: &Twin) -> String {
    format!("no cursor {}; {}: was the relay renamed?", config.relay, evidence(twin))
}

/// What speaks for a rename.
pub(in crate::relay) fn evidence(twin: &Twin) -> String {
    let Twin { relay: old, has, replica, .. } = twin;
    let runs = match replica {
        Some(replica) => {
            format!("replica {replica} still runs relay {old}, which this configuration does not have")
        }
        None => "no replica has its relay".to_owned(),
    };
    format!("cursor {old} has {has}, and {runs}")
}

/// The commands that decide it.
pub(in crate::relay) fn hint(config: &Config, twin: &Twin) -> String {
    let (relay, Twin { relay: old, replica, .. }) = (&config.relay, twin);
    let begins = match &config.source {
        source::Config::Stream(_) => format!("`outbox-relay cursor create {relay} --now`, or --beginning"),
        source::Config::Pending(_) | source::Config::Schedule(_) => {
            format!("`outbox-relay cursor create {relay} --beginning`")
        }
        // One relay sends a template.
        source::Config::Requests(requests) => {
            let over = ledger::hand_over(old, relay, &requests.templates);
            format!("give its templates other names, or hand them over: {over}")
        }
    };
    let stop =
        if replica.is_some() { format!("stop the replicas that have relay {old}, then ") } else { String::new() };
    let end = if begins.ends_with(';') { "" } else { "." };
    let merge = if twin.both {
        let (old, relay) = (quote_literal(old), quote_literal(relay));
        format!("UPDATE outbox.schedule SET relay = {old} WHERE relay = {relay}; then ")
    } else {
        String::new()
    };
    format!("If it was renamed: {merge}{stop}`outbox-relay cursor rename {old} {relay}`; if it is new: {begins}{end}")
}
