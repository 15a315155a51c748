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
    /// The payload as sent; read only for letters that are asked for by number.
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

/// Which dead letters.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Those of these numbers, whatever their state.
    Ids(&'a [i64]),
    /// The open ones of one cursor, of all cursors of a relay, or of all.
    Open(Option<&'a str>),
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
    let (ids, cursor) = match which {
        Which::Ids(ids) => (Some(ids), None),
        Which::Open(cursor) => (None, cursor),
    };
    let rows = client.query(include_str!("sql/letters_list.sql"), &[&ids, &cursor]).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
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

/// Carries out a decision about those that are still open; gives their number.
///
/// # Errors
/// The database's.
pub async fn decide(client: &mut Client, ids: &[i64], decision: Decision, by: &str) -> Result<usize, Error> {
    match decision {
        Decision::Redrive => redrive(client, ids, by).await,
        Decision::Discard => discard(client, ids, by).await,
    }
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
