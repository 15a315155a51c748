//! Where cursors stand, read without any lock; and the rows of new cursors.

use tokio_postgres::{Client, Row, SimpleQueryMessage};

use super::change::RelayFacts;
use super::lock::swept;
use super::position;
use super::status::HaltScope;
use crate::database::{Error, Session, quote_literal};
use crate::late::Swept;
use crate::position::{Position, Timestamp};

/// The names stand in a sub-select for the reason that [`crate::source::table`] gives; without the cast, its rows would be
/// compared with, and not its list.
const STANDINGS: &str = include_str!("sql/standing.sql");

/// A cursor as it stands, whoever holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Where it is; `None` is before every row.
    pub position: Option<Position>,
    /// The database's clock at the scan of the last advance.
    pub observed_at: Option<Timestamp>,
    /// When it last advanced, or was created.
    pub advanced_at: Timestamp,
    /// An operator has paused it.
    pub paused: bool,
    /// An operator's change is waiting.
    pub change: bool,
    /// It is halted: for these replicas.
    pub halted: Option<HaltScope>,
    /// The word in `cursor_status`; empty when there is none.
    pub state: String,
    /// Who advanced it last.
    pub advanced_by: Option<String>,
    /// Its sink's circuit, when that is open.
    pub circuit: Option<Circuit>,
    /// Dead letters are to be sent, again or late.
    pub redrive: bool,
    /// An operator wants that of some.
    pub requested: bool,
    /// Somebody has rows in flight, or had when he ended.
    pub in_flight: bool,
    /// The horizon rule that its position rests on.
    pub rule: Option<String>,
    /// What its position was compared by.
    pub order: Option<String>,
    /// The numbers of the columns that it was compared by.
    pub columns: Option<Vec<i16>>,
    /// Up to where the late rows at or below its position have been found.
    pub swept: Option<Swept>,
}

/// An open circuit: the sink is out, and one relay at a time tries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Since when.
    pub opened_at: Timestamp,
    /// When it was last tried.
    pub tried_at: Timestamp,
}

/// A row for a new cursor.
#[derive(Clone, Debug)]
pub struct Creation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its relay's name.
    pub relay: &'a str,
    /// What it belongs to, as JSON.
    pub identity: &'a str,
    /// Where it begins; `None` is before every row.
    pub position: Option<&'a Position>,
    /// The horizon rule of its table; none for rows that are sent each on their own.
    pub rule: Option<&'a str>,
    /// The number of the column by which late rows are found; none where they are not.
    pub sweep: Option<i16>,
}

/// Reads the cursors of these names; those that do not exist yet are left out.
///
/// # Errors
/// The database's.
pub async fn standings(session: &Session, names: &[&str]) -> Result<Vec<Standing>, Error> {
    let statement = session.prepare_cached(STANDINGS).await?;
    let rows = session.query(&statement, &[&names]).await?;
    Ok(rows.iter().map(standing).collect::<Result<_, _>>()?)
}

fn standing(row: &Row) -> Result<Standing, tokio_postgres::Error> {
    let halted: bool = row.try_get(7)?;
    let fingerprint: Option<String> = row.try_get(8)?;
    let code: Option<&str> = row.try_get(22)?;
    let advanced_at: Option<Timestamp> = row.try_get(4)?;
    Ok(Standing {
        name: row.try_get(0)?,
        position: position(row.try_get(1)?, row.try_get(2)?),
        observed_at: row.try_get(3)?,
        advanced_at: match advanced_at {
            Some(at) => at,
            None => row.try_get(9)?,
        },
        paused: row.try_get(5)?,
        change: row.try_get(6)?,
        halted: halted.then(|| HaltScope::new(fingerprint, code)),
        state: row.try_get(10)?,
        advanced_by: row.try_get(11)?,
        circuit: match row.try_get(12)? {
            Some(opened_at) => Some(Circuit { opened_at, tried_at: row.try_get(13)? }),
            None => None,
        },
        redrive: row.try_get(14)?,
        in_flight: row.try_get(15)?,
        rule: row.try_get(16)?,
        requested: row.try_get(17)?,
        order: row.try_get(18)?,
        columns: row.try_get(19)?,
        swept: swept(row.try_get(20)?, row.try_get(21)?),
    })
}

/// What the cursor belongs to, when that is not what the relay finds; none when it is, when an operator has accepted
/// exactly these facts for it, or when there is no such cursor.
///
/// # Errors
/// The database's.
pub async fn foreign_identity(session: &Session, name: &str, facts: RelayFacts<'_>) -> Result<Option<String>, Error> {
    let relations = serde_json::json!(facts.relations).to_string();
    let row = session
        .query_opt(
            include_str!("sql/standing_foreign_identity.sql"),
            &[&name, &facts.identity, &i64::from(facts.root), &relations],
        )
        .await?;
    Ok(match row {
        Some(row) => Some(row.try_get(0)?),
        None => None,
    })
}

/// Creates a cursor's row unless it exists, or its relay has cursors of another set of shards; whether it did.
///
/// One message, and so one transaction: creations of one relay and its `cursor reshard` come one after another, and the
/// second statement's snapshot is newer than the lock. So of two configurations that start at the same instant, one creates
/// its cursors, and the other finds them.
///
/// # Errors
/// The database's.
pub async fn create(client: &Client, creation: Creation<'_>) -> Result<bool, Error> {
    let [name, relay, identity] = [creation.name, creation.relay, creation.identity].map(quote_literal);
    let position = creation.position;
    let created_at = position.map_or_else(|| "NULL".to_owned(), |p| quote_literal(&p.created_at.to_string()));
    let id = position.and_then(|p| p.id.as_deref()).map_or_else(|| "NULL".to_owned(), quote_literal);
    // What is there is passed as the relay's `start` wants it; what comes below the position from now on is late.
    let snapshot = creation.sweep.map_or_else(
        || "NULL::pg_snapshot, NULL::smallint".to_owned(),
        // Up to an instant that is still to come, rows are passed as they come, and none of them is late.
        |column| {
            let ahead = format!("{created_at}::timestamptz > pg_catalog.clock_timestamp()");
            format!(
                "CASE WHEN {ahead} THEN NULL ELSE pg_catalog.pg_current_snapshot() END, \
                 CASE WHEN {ahead} THEN NULL ELSE {column}::smallint END"
            )
        },
    );
    let rule = creation.rule.map_or_else(|| "NULL".to_owned(), quote_literal);
    // A row that a reshard is about to delete is one that exists: waiting for its end, as ON CONFLICT alone would, would create
    // the row again beside the cursors that have taken its place.
    let sql = format!(
        "{}; INSERT INTO outbox.cursor (name, relay, identity, position_created_at, position_id, rule, snapshot, swept_column) \
         SELECT {name}, {relay}, {identity}::jsonb, {created_at}::timestamptz, {id}::text, {rule}::text, {snapshot} \
         WHERE NOT EXISTS (SELECT FROM outbox.cursor AS c WHERE c.name = {name}) \
         AND NOT EXISTS (SELECT FROM outbox.cursor AS c WHERE c.relay = {relay} \
         AND (c.identity ->> 'shards', c.identity ->> 'shard_key') IS DISTINCT FROM \
         ({identity}::jsonb ->> 'shards', {identity}::jsonb ->> 'shard_key')) ON CONFLICT DO NOTHING",
        set_lock(&relay)
    );
    let messages = client.simple_query(&sql).await?;
    let rows = messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
        _ => None,
    });
    Ok(rows == Some(1))
}

/// Locks the set of a relay's cursors, by the SQL literal of its name, until the transaction ends.
pub(super) fn set_lock(relay: &str) -> String {
    format!(
        "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox-relay cursors of ' || {relay}, 0))"
    )
}
