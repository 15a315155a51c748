//! What operators do with dead letters. Each verb leaves a row in `outbox.operation` for each cursor concerned.

use std::collections::BTreeSet;

use tokio_postgres::{Client, Row};

use super::control::note;
use crate::database::Error;
use crate::position::Timestamp;

/// A dead letter as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterSummary {
    /// Its number.
    pub id: i64,
    /// The cursor that advanced over the row.
    pub cursor: String,
    /// The table.
    pub source: String,
    /// The row's place in the order.
    pub created_at: Timestamp,
    /// The row's id.
    pub message_id: String,
    /// Kind of the sink, and where the message should have gone.
    pub target: String,
    /// Its key.
    pub key: Option<String>,
    /// The payload as sent; read only for the one that is shown.
    pub payload: Option<Vec<u8>>,
    /// `dead`, `redriving`, `redriven` or `discarded`.
    pub state: String,
    /// How often it was refused.
    pub attempts: i32,
    /// When it was dead-lettered, the last time.
    pub dead_lettered_at: Timestamp,
    /// Why, as JSON.
    pub error: String,
    /// How many rows of its key are parked, itself included; none where it holds no key up.
    pub parked_rows: Option<i64>,
}

/// So many are decided about in one transaction: a statement about a million would be cut, and hold their locks until then.
const TOGETHER: usize = 5000;

/// Which dead letters.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The one of this number, whatever its state, with its payload.
    Whole(i64),
    /// Those of these numbers, whatever their state.
    Ids(&'a [i64]),
    /// The open ones of one cursor, of all cursors of a relay, or of all; so many at most.
    Open(Option<&'a str>, i64),
}

/// The open dead letters of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLetters {
    /// The cursor.
    pub cursor: String,
    /// Their numbers, oldest row first.
    pub ids: Vec<i64>,
}

/// What an operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send it again.
    Redrive,
    /// Give it up.
    Discard,
}

/// Lists dead letters, oldest row first.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client, which: Which<'_>) -> Result<Vec<DeadLetterSummary>, Error> {
    let one: [i64; 1];
    let (ids, cursor, whole, most): (Option<&[i64]>, Option<&str>, bool, Option<i64>) = match which {
        Which::Whole(id) => {
            one = [id];
            (Some(one.as_slice()), None, true, None)
        }
        Which::Ids(ids) => (Some(ids), None, false, None),
        Which::Open(cursor, most) => (None, cursor, false, Some(most)),
    };
    let rows = client.query(include_str!("sql/letters_list.sql"), &[&ids, &cursor, &whole, &most]).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

/// All open dead letters of a cursor, or of all cursors of a relay, by cursor.
///
/// # Errors
/// The database's.
pub async fn open(client: &Client, cursor: &str) -> Result<Vec<OpenLetters>, Error> {
    let rows = client.query(include_str!("sql/letters_open.sql"), &[&cursor]).await?;
    let open = rows.iter().map(|row| Ok(OpenLetters { cursor: row.try_get(0)?, ids: row.try_get(1)? }));
    Ok(open.collect::<Result<_, tokio_postgres::Error>>()?)
}

fn listed(row: &Row) -> Result<DeadLetterSummary, tokio_postgres::Error> {
    Ok(DeadLetterSummary {
        id: row.try_get(0)?,
        cursor: row.try_get(1)?,
        source: row.try_get(2)?,
        created_at: row.try_get(3)?,
        message_id: row.try_get(4)?,
        target: row.try_get(5)?,
        key: row.try_get(6)?,
        payload: row.try_get(7)?,
        state: row.try_get(8)?,
        attempts: row.try_get(9)?,
        dead_lettered_at: row.try_get(10)?,
        error: row.try_get(11)?,
        parked_rows: row.try_get(12)?,
    })
}

/// Carries out a decision about those that are still open, so many in a transaction; gives their number.
///
/// # Errors
/// The database's; what was decided before it stays decided.
pub async fn decide(client: &mut Client, ids: &[i64], decision: Decision, by: &str) -> Result<usize, Error> {
    let mut changed = 0;
    for ids in ids.chunks(TOGETHER) {
        changed += match decision {
            Decision::Redrive => redrive(client, ids, by).await?,
            Decision::Discard => discard(client, ids, by).await?,
        };
    }
    Ok(changed)
}

async fn redrive(client: &mut Client, ids: &[i64], by: &str) -> Result<usize, Error> {
    let transaction = client.transaction().await?;
    let rows = transaction.query(include_str!("sql/letters_redrive.sql"), &[&ids, &by]).await?;
    let changed = rows.iter().map(|row| Ok((row.try_get(1)?, row.try_get(0)?)));
    let changed = changed.collect::<Result<Vec<(String, i64)>, tokio_postgres::Error>>()?;
    for cursor in changed.iter().map(|(cursor, _)| cursor).collect::<BTreeSet<_>>() {
        let ids: Vec<i64> = changed.iter().filter(|(of, _)| of == cursor).map(|(_, id)| *id).collect();
        let detail = serde_json::json!({ "ids": ids }).to_string();
        note(&transaction, "dead-letter redrive", cursor, by, Some(&detail)).await?;
    }
    transaction.commit().await?;
    Ok(changed.len())
}

/// One statement, which leaves its notes, too.
async fn discard(client: &Client, ids: &[i64], by: &str) -> Result<usize, Error> {
    let changed = client.query_one(include_str!("sql/letters_discard.sql"), &[&ids, &by]).await?;
    Ok(usize::try_from(changed.try_get::<_, i64>(0)?).unwrap_or_default())
}
