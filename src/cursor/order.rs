//! Writing an operator's change to `outbox.control`, and what has become of it.

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::change::Adoption;
use super::control::note;
use crate::database::Error;
use crate::position::{Position, Timestamp};

/// Its number is above every change so far and above the last one carried out.
const ORDER: &str = include_str!("sql/order.sql");

/// Ends a halt: of a message ($2), or with one of these codes ($3).
pub(super) const UNHALT: &str = include_str!("sql/order_unhalt.sql");

/// Replicas of an older version note it by its older name.
const OUTCOME: &str = include_str!("sql/order_outcome.sql");

const MOVED_TO: &str = include_str!("sql/order_moved_to.sql");

/// A change to be written.
#[derive(Clone, Debug, Default)]
pub struct Order<'a> {
    /// Where to; `None` is before every row.
    pub to: Option<&'a Position>,
    /// Only if the cursor stands here.
    pub from: Option<Option<&'a Position>>,
    /// What the cursor shall belong to.
    pub adopt: Option<&'a Adoption>,
    /// A halt at this message is over with it.
    pub passes: Option<&'a str>,
}

/// What has become of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits for a turn.
    Waiting,
    /// It was carried out, and the position is another now.
    Moved,
    /// It was carried out, and the position is what it was: the cursor had moved on, or stood there already.
    Stayed,
    /// It was not carried out and never will be: another change took its place, or the cursor was created again.
    Replaced,
}

/// Writes a change, ends the halts that it cures, and leaves a row in `outbox.operation`, all at once: no turn sees one
/// without the other. Answers the change's number; none when there is no such cursor.
///
/// # Errors
/// The database's.
pub async fn order(
    client: &mut Client,
    name: &str,
    order: &Order<'_>,
    (verb, by, detail): (&str, &str, &serde_json::Value),
) -> Result<Option<i64>, Error> {
    let to = order.to.map(|position| (position.created_at, position.id.as_deref()));
    let from = order.from.flatten().map(|position| (position.created_at, position.id.as_deref()));
    let (to_at, to_id) = (to.map(|to| to.0), to.and_then(|to| to.1));
    let (from_at, from_id) = (from.map(|from| from.0), from.and_then(|from| from.1));
    let adopt = order.adopt.map(|adoption| serde_json::json!(adoption).to_string());
    let parameters: [&(dyn ToSql + Sync); 7] =
        [&name, &to_at, &to_id, &order.from.is_some(), &from_at, &from_id, &adopt];
    let transaction = client.transaction().await?;
    let Some(row) = transaction.query_opt(ORDER, &parameters).await? else { return Ok(None) };
    let number: i64 = row.try_get(0)?;
    transaction.execute(UNHALT, &[&name, &order.passes, &order.adopt.map(|_| Adoption::CURES.as_slice())]).await?;
    // Its outcome is noted by the number, and perhaps after the next order.
    let mut detail = detail.clone();
    if let Some(facts) = detail.as_object_mut() {
        facts.insert("number".to_owned(), number.into());
    }
    note(&transaction, verb, name, by, Some(&detail.to_string())).await?;
    transaction.commit().await?;
    Ok(Some(number))
}

/// What has become of the change of this number.
///
/// # Errors
/// The database's; also when the cursor is gone.
pub async fn fate(client: &Client, name: &str, number: i64) -> Result<Fate, Error> {
    let row = client.query_one(OUTCOME, &[&name, &number]).await?;
    let moved: Option<bool> = row.try_get(1)?;
    Ok(match (row.try_get(0)?, moved) {
        (false, _) => Fate::Waiting,
        (true, Some(true)) => Fate::Moved,
        (true, Some(false)) => Fate::Stayed,
        (true, None) => Fate::Replaced,
    })
}

/// Whether an operator's change has left a cursor at this instant.
///
/// # Errors
/// The database's.
pub async fn has_moved_to(client: &Client, instant: Timestamp) -> Result<bool, Error> {
    Ok(client.query_one(MOVED_TO, &[&instant]).await?.try_get(0)?)
}
