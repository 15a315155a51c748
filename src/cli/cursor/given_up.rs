//! The rows after a cursor's position, which are given up when it is removed.
//!
//! Promise: they are counted up to a bound, in the session limits of turns; what cannot be counted is no reason to keep a
//! cursor, and is said.

use std::collections::BTreeMap;

use super::belongings::FoundCursor;
use crate::cli::table::visible;
use crate::config::{Config, DEFAULT_CREATED_AT, DEFAULT_ID};
use crate::database::Session;
use crate::position::Timestamp;
use crate::relay::engine::lag;
use crate::relay::engine::lag::Lag;
use crate::relay::engine::not_ready::Unready;
use crate::relay::inspect::adopt::{self, Remembered};
use crate::relay::inspect::waiting_rows;
use crate::relay::setup::prepare;
use crate::source::shape::Shape;
use crate::source::shard::Shard;
use crate::source::{self, RuleChoice, Stream};

/// What was counted after a position, none of a relay without rows of its own: its requests or actions are finished, or the
/// removal is refused. Otherwise why it could not be counted.
pub(super) type Counted = Result<Option<Lag>, String>;

/// Counts the rows after the position of each cursor of a relay, on its own session.
pub(super) async fn count(config: &Config, cursors: &[FoundCursor]) -> anyhow::Result<Vec<Counted>> {
    let session = crate::cli::session(config, "cursor").await?;
    let mut counted = Vec::with_capacity(cursors.len());
    for cursor in cursors {
        counted.push(after(&session, config, cursor).await.map_err(|error| error.to_string()));
    }
    Ok(counted)
}

async fn after(session: &Session, config: &Config, cursor: &FoundCursor) -> anyhow::Result<Option<Lag>> {
    let relay = config.relays.iter().find(|relay| relay.name == cursor.name);
    let (source, shard) = match relay {
        Some(relay) if matches!(relay.source, source::Config::Requests(_) | source::Config::Schedule(_)) => {
            return Ok(None);
        }
        Some(relay) if !matches!(relay.source, source::Config::Stream(_)) => {
            let due = waiting_rows::of_due_work(session, relay).await?;
            return due.map(Some).ok_or_else(|| anyhow::anyhow!("table {} cannot be read", relay.source.table()));
        }
        Some(relay) => (relay.source.clone(), relay.shard.clone()),
        None => match remembered(session, config, cursor).await? {
            Some(known) => known,
            None => return Ok(None),
        },
    };
    let shape = match prepare::shape(session, &source).await? {
        Ok(shape) => Shape { shard, ..shape },
        Err(Unready::Wrong { message, .. }) => anyhow::bail!("{message}"),
        Err(Unready::Waiting) => anyhow::bail!("table {} cannot be read", source.table()),
    };
    let now: Timestamp = session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
    Ok(Some(lag::measure(session, &shape, cursor.position.as_ref(), now).await?))
}

/// The table of a relay that is not configured any more, as its cursor knows it, with the columns that another relay of that
/// table has, or a configuration that names none; none of a relay of requests or schedules.
async fn remembered(
    session: &Session,
    config: &Config,
    cursor: &FoundCursor,
) -> anyhow::Result<Option<(source::Config, Option<Shard>)>> {
    let Some(Remembered { table, is_stream, shards }) = adopt::remembered(session, &cursor.name).await? else {
        anyhow::bail!("this configuration does not have the relay, and its cursor does not name its table");
    };
    // Tables of a relay of requests or schedules are the schema's own, and only theirs.
    if !is_stream && table.schema == "outbox" && matches!(&*table.name, "request" | "action" | "schedule") {
        return Ok(None);
    }
    anyhow::ensure!(is_stream, "this configuration does not have the relay");
    let number = cursor.name.rsplit_once('#').and_then(|(_, number)| number.parse().ok());
    let shard = shards.zip(number).map(|((of, key), number)| Shard { key, of, number });
    let of_that_table = |source: &source::Config| {
        matches!(source, source::Config::Stream(stream) if stream.table == table).then(|| source.clone())
    };
    let source = config.relays.iter().find_map(|relay| of_that_table(&relay.source));
    let source = source.unwrap_or_else(|| {
        let (id, created_at) = (DEFAULT_ID.to_owned(), DEFAULT_CREATED_AT.to_owned());
        let horizon = RuleChoice::Auto;
        source::Config::Stream(Stream {
            table,
            id,
            created_at,
            horizon,
            time_zone: None,
            latency_window: None,
            standbys: 0,
            max_hold: None,
            filter: BTreeMap::new(),
        })
    });
    Ok(Some((source, shard)))
}

/// A line for people.
pub(super) fn line(relay: &str, counted: &Counted) -> String {
    let relay = visible(relay);
    match counted {
        Ok(None) => "it has no rows to give up\n".to_owned(),
        Ok(Some(Lag { rows: 0, .. })) => "no row waits after it\n".to_owned(),
        Ok(Some(Lag { rows: 1, .. })) => format!("1 row after it is given up: {relay} never sends it\n"),
        Ok(Some(Lag { rows, capped, .. })) => {
            let more = if *capped { " or more" } else { "" };
            format!("{rows}{more} rows after it are given up: {relay} never sends them\n")
        }
        Err(why) => {
            let why = visible(why);
            format!("rows that were not delivered may be given up: they cannot be counted: {why}\n")
        }
    }
}

/// For the row in `outbox.operation`: of each cursor by name, null where it could not be counted.
pub(super) fn detail(cursors: &[FoundCursor], counted: &[Counted]) -> serde_json::Value {
    let one = |counted: &Counted| match counted {
        Ok(None) => serde_json::json!({ "rows": 0, "capped": false }),
        Ok(Some(lag)) => serde_json::json!({ "rows": lag.rows, "capped": lag.capped }),
        Err(_) => serde_json::Value::Null,
    };
    cursors.iter().zip(counted).map(|(cursor, counted)| (cursor.name.clone(), one(counted))).collect()
}
