//! The cursors of a relay instead of others: one transaction, under the locks of all that end.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::control::note;
use super::standing::set_lock;
use super::status::is_decision;
use super::{RestsOn, lock, position};
use crate::audit::MADE_UP_FOR;
use crate::database::{Error, quote_literal};
use crate::late::Swept;
use crate::position::{Position, Timestamp};

const OLD: &str = include_str!("sql/reshard_old.sql");

const LOCK: &str = "SELECT FROM outbox.cursor WHERE relay = $1 ORDER BY name FOR UPDATE";

/// An old change for a name that comes back must not be carried out again.
const MAKE: &str = include_str!("sql/reshard_make.sql");

/// A cursor that is to end.
#[derive(Clone, Debug)]
pub struct Old {
    /// Its name.
    pub name: String,
    /// What it belongs to.
    pub identity: Value,
    /// Where it stands; `None` is before every row.
    pub position: Option<Position>,
    observed_at: Option<Timestamp>,
    relations: Option<Vec<u32>>,
    partitions: Option<i32>,
    rests_on: RestsOn,
    swept: Option<Swept>,
    /// An operator has paused it.
    pub paused: bool,
    /// A change, rows in flight, or letters that are to be sent wait for its next turn.
    pub waits: bool,
    /// Its dead letters that wait for an operator.
    pub letters: i64,
    /// Its outcomes that nobody has settled.
    pub unknown: i64,
    /// The code of its halt, if an operator must decide about it.
    pub decision: Option<String>,
}

impl Old {
    /// Whether its late rows are found by their transactions.
    #[must_use]
    pub const fn is_swept(&self) -> bool {
        self.swept.is_some()
    }

    /// The relations that it has known, the table among them; none before its first advance.
    #[must_use]
    pub fn known(&self) -> Option<BTreeSet<u32>> {
        Some(self.relations.as_ref()?.iter().skip(1).copied().collect())
    }
}

/// The relations that all of them have known, the table's own oid first. One that some cursor does not know is new to the
/// cursors that follow: its rows below their position are looked for then.
fn known(old: &[Old]) -> Option<Vec<u32>> {
    let root = *old.iter().find_map(|old| old.relations.as_ref())?.first()?;
    let all = old.iter().filter_map(Old::known).reduce(|all, known| &all & &known)?;
    Some(std::iter::once(root).chain(all).collect())
}

/// Up to where the late rows of all of them have been found: all that `seen` sees. What one of the cursors has delivered since another's
/// snapshot would come again from what both of those see.
fn swept(old: &[Old], seen: &str) -> Option<Swept> {
    let all: Vec<&Swept> = old.iter().map(|old| old.swept.as_ref()).collect::<Option<_>>()?;
    let column = all.first()?.column;
    let is_alike = all.iter().all(|swept| swept.column == column);
    is_alike.then(|| Swept { snapshot: seen.to_owned(), column })
}

/// The cursors that shall be.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Their relay.
    pub relay: &'a str,
    /// Their names.
    pub names: &'a [String],
    /// What they belong to, as JSON.
    pub identity: &'a str,
    /// The horizon rule of the table, where none of the former has recorded one.
    pub rule: &'a str,
    /// What positions are compared by now, and the numbers of those columns.
    pub order: (&'a str, &'a [i16]),
    /// Where they begin: the first rows are those of this instant.
    pub at: Option<Timestamp>,
    /// A snapshot: of what it sees, each cursor that ends has dealt with all rows up to its position.
    pub seen: &'a str,
}

/// The cursors of a relay, as they stand.
///
/// # Errors
/// The database's.
pub async fn old(client: &Client, relay: &str) -> anyhow::Result<Vec<Old>> {
    let rows = client.query(OLD, &[&relay]).await?;
    rows.iter()
        .map(|row| {
            Ok(Old {
                name: row.try_get(0)?,
                identity: serde_json::from_str(row.try_get(1)?)?,
                position: position(row.try_get(2)?, row.try_get(3)?),
                observed_at: row.try_get(4)?,
                relations: row.try_get(5)?,
                partitions: row.try_get(6)?,
                paused: row.try_get(7)?,
                waits: row.try_get(8)?,
                letters: row.try_get(9)?,
                unknown: row.try_get(10)?,
                rests_on: RestsOn {
                    rule: row.try_get(11)?,
                    open_since: row.try_get(12)?,
                    order: row.try_get(15)?,
                    columns: row.try_get(16)?,
                },
                swept: lock::swept(row.try_get(13)?, row.try_get(14)?),
                decision: row.try_get::<_, Option<String>>(17)?.filter(|code| is_decision(code)),
            })
        })
        .collect()
}

/// Waits for the turns that run and lets no other begin, and no cursor of the relay be created, until the transaction ends
/// that the client is in.
///
/// # Errors
/// The database's.
pub async fn lock(client: &Client, relay: &str) -> Result<(), Error> {
    client.batch_execute(&set_lock(&quote_literal(relay))).await?;
    client.execute(LOCK, &[&relay]).await?;
    Ok(())
}

/// Lets no operator order anything until the transaction ends, the first order for a cursor included: a pause that is said to be done must
/// not vanish with its cursor.
///
/// # Errors
/// The database's.
pub async fn lock_orders(client: &Client) -> Result<(), Error> {
    Ok(client.batch_execute("LOCK TABLE outbox.control IN SHARE ROW EXCLUSIVE MODE").await?)
}

/// How many slices of the audit end with these cursors before their last comparison.
///
/// # Errors
/// The database's.
pub async fn slices(client: &Client, old: &[Old]) -> Result<i64, Error> {
    let names: Vec<&str> = old.iter().map(|old| old.name.as_str()).collect();
    let parameters: [&(dyn ToSql + Sync); 2] = [&names, &MADE_UP_FOR.as_secs_f64()];
    Ok(client.query_one(include_str!("sql/reshard_slices.sql"), &parameters).await?.try_get(0)?)
}

/// Puts the new cursors in the place of the old ones, in the transaction that has locked them. What is known of the table and
/// the topic goes over to them.
///
/// # Errors
/// The database's.
pub async fn replace(client: &Client, old: &[Old], new: New<'_>, by: &str, detail: &Value) -> Result<(), Error> {
    let gone: Vec<&str> = old.iter().map(|old| old.name.as_str()).collect();
    let latest = old.iter().max_by_key(|old| old.observed_at);
    let observed_at = latest.and_then(|old| old.observed_at);
    let relations = known(old);
    let partitions = old.iter().filter_map(|old| old.partitions).max();
    client.execute("DELETE FROM outbox.cursor WHERE name = ANY ($1::text[])", &[&gone]).await?;
    client.execute("DELETE FROM outbox.control WHERE cursor = ANY ($1::text[])", &[&gone]).await?;
    let told: Vec<&str> = gone.iter().copied().chain(new.names.iter().map(String::as_str)).collect();
    client.execute("DELETE FROM outbox.cursor_status WHERE cursor = ANY ($1::text[])", &[&told]).await?;
    // The stronger one, if they differ: a table that is weaker than it is then noticed.
    let rule = old.iter().filter_map(|old| old.rests_on.rule.clone()).max().unwrap_or_else(|| new.rule.to_owned());
    // Not known of one is not known of all.
    let open_since: Option<Vec<Timestamp>> = old.iter().map(|old| old.rests_on.open_since).collect();
    let open_since = open_since.and_then(|all| all.into_iter().min());
    let swept = swept(old, new.seen);
    let (snapshot, column) = swept.map(|swept| (swept.snapshot, swept.column)).unzip();
    // Where it has changed since for one of them, the new cursors go back.
    let (order, columns) = rested_on(old, new.order);
    let parameters: [&(dyn ToSql + Sync); 13] = [
        &new.names,
        &new.relay,
        &new.identity,
        &new.at,
        &observed_at,
        &relations,
        &partitions,
        &rule,
        &open_since,
        &snapshot,
        &column,
        &order,
        &columns,
    ];
    client.execute(MAKE, &parameters).await?;
    note(client, "cursor reshard", new.relay, by, Some(&detail.to_string())).await
}

/// Of the orders that positions were compared by, one that is not the present one, if there is such.
fn rested_on<'a>(old: &'a [Old], now: (&str, &[i16])) -> (Option<&'a str>, Option<&'a [i16]>) {
    let known = |old: &'a Old| (old.rests_on.order.as_deref(), old.rests_on.columns.as_deref());
    let is_another = |(order, columns): &(Option<&str>, Option<&[i16]>)| {
        order.is_some_and(|order| order != now.0) || columns.is_some_and(|columns| columns != now.1)
    };
    let all = || old.iter().map(known).filter(|(order, _)| order.is_some());
    all().find(is_another).or_else(|| all().next()).unwrap_or_default()
}
