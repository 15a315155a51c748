//! Keys that are parked (`on_poison = "park_key"`), and the rows that wait for them.
//!
//! Promise: only the holder of the cursor's lock adds a row, in the transaction that advances over it, and takes one away that was
//! sent, in the transaction that records it. A key stands in `outbox.parked_key` from the refusal of its first row until none of its rows is
//! left; while it does, none of its rows is sent but from `outbox.parked`, in order. Any statement that ends the
//! dead letter that it waits for takes the refused row away and releases the key, by a trigger.

use std::collections::HashMap;

use tokio_postgres::types::ToSql;

use super::dead_letter::{self, DeadLetter, Redrive};
use super::position;
use super::status::ErrorReport;
use crate::database::{Error, Fragile};
use crate::position::{Position, Timestamp};

const KEYS: &str = include_str!("sql/parked_keys.sql");
/// In the order of those who release them.
const LOCK: &str =
    "SELECT FROM outbox.parked_key WHERE cursor = $1 AND key = ANY ($2::text[]) ORDER BY cursor, key FOR UPDATE";
const ADD: &str = include_str!("sql/parked_add.sql");
const BEGIN: &str = include_str!("sql/parked_begin.sql");
const RELEASED: &str = include_str!("sql/parked_released.sql");
const SENT: &str = include_str!("sql/parked_sent.sql");
const REFUSED: &str = include_str!("sql/parked_refused.sql");
const END: &str = include_str!("sql/parked_end.sql");
const SAMPLES: &str = include_str!("sql/parked_samples.sql");

/// How many bytes of released rows are read at a time; the row that passes it is the last.
const RELEASED_BYTES: i64 = 8 << 20;
/// A longer key is not parked: an entry of an index has room for no more beside a cursor's name.
pub const LONGEST_KEY: usize = 2000;

/// The keys of a cursor that are parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParkedKeys {
    /// By their text.
    pub keys: HashMap<String, ParkedKey>,
    /// Some were released.
    pub released: bool,
}

/// A key that is parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedKey {
    /// How many rows of it wait.
    pub rows: u64,
    /// They wait for nothing but their turn.
    pub released: bool,
    /// When the row was created that it waits for, or waited for last.
    pub since: Timestamp,
    /// The id of that row.
    pub since_id: String,
    /// When the newest row was created that waits.
    pub until: Option<Timestamp>,
}

/// What the rows that wait with a key say of what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedSample {
    /// The key.
    pub key: String,
    /// All that was asked for was read then of the newest row that could be read; none where none could be.
    pub is_complete: Option<bool>,
    /// What was asked for, as it was read of that row.
    pub values: Vec<Option<Vec<u8>>>,
    /// The place of the newest row.
    pub newest: Option<Position>,
}

/// Rows of such keys, which an advance passes and writes down, in order.
#[derive(Clone, Debug, Default)]
pub struct NewlyParked<'a> {
    /// The table.
    pub source: String,
    /// What was read of each row, in words.
    pub fields: Vec<String>,
    /// The values read, row by row.
    pub values: Vec<Option<&'a [u8]>>,
    /// Their keys.
    pub keys: Vec<&'a str>,
    /// When they were created.
    pub instants: Vec<Timestamp>,
    /// Their ids.
    pub ids: Vec<&'a str>,
    /// How many bytes the values of each take.
    pub bytes: Vec<i64>,
}

/// A row of a released key that its receiver refuses: the key waits again, for this dead letter.
#[derive(Debug)]
pub struct RefusedAgain<'a> {
    /// The row's number.
    pub seq: i64,
    /// The letter.
    pub letter: DeadLetter<'a>,
    /// Why.
    pub error: ErrorReport<'a>,
}

/// What became of rows of released keys.
#[derive(Debug)]
pub struct Unparked<'a> {
    /// The numbers of those that were accepted.
    pub accepted: &'a [i64],
    /// The one that was refused.
    pub refused: Option<RefusedAgain<'a>>,
    /// This replica's name.
    pub by: &'a str,
    /// The sink has a rate, and something was sent: the cursor counts as advanced now, for the pause of all replicas.
    pub paced: bool,
}

pub(super) async fn keys(loan: &Fragile, cursor: &str) -> Result<ParkedKeys, Error> {
    let statement = loan.prepare_cached(KEYS).await?;
    let mut keys = ParkedKeys::default();
    for row in loan.query(&statement, &[&cursor]).await? {
        let (rows, released): (i64, bool) = (row.try_get(1)?, row.try_get(2)?);
        keys.released |= released;
        let key = ParkedKey {
            rows: rows.unsigned_abs(),
            released,
            since: row.try_get(3)?,
            since_id: row.try_get(4)?,
            until: row.try_get(5)?,
        };
        keys.keys.insert(row.try_get(0)?, key);
    }
    Ok(keys)
}

/// Of some keys what their rows say, with the values of these fields, which make a key now.
pub(super) async fn samples(
    loan: &Fragile,
    cursor: &str,
    fields: &[String],
    most: i64,
) -> Result<Vec<ParkedSample>, Error> {
    let statement = loan.prepare_cached(SAMPLES).await?;
    let rows = loan.query(&statement, &[&cursor, &fields, &most]).await?;
    let sample = |row: &tokio_postgres::Row| {
        let newest = position(row.try_get(3)?, row.try_get(4)?);
        Ok(ParkedSample { key: row.try_get(0)?, is_complete: row.try_get(1)?, values: row.try_get(2)?, newest })
    };
    rows.iter().map(sample).collect::<Result<_, tokio_postgres::Error>>().map_err(Error::from)
}

pub(super) async fn add(loan: &Fragile, cursor: &str, new: &NewlyParked<'_>, by: &str) -> Result<(), Error> {
    // A statement of its own: within one, rows may be added before the keys are locked.
    loan.query(LOCK, &[&cursor, &new.keys]).await?;
    let statement = loan.prepare_cached(ADD).await?;
    let parameters: [&(dyn ToSql + Sync); 9] =
        [&cursor, &new.source, &new.fields, &new.values, &by, &new.keys, &new.instants, &new.ids, &new.bytes];
    loan.execute(&statement, &parameters).await?;
    Ok(())
}

/// Parks the key whose row is this dead letter.
pub(super) async fn begin(loan: &Fragile, letter: i64, key: &str, by: &str) -> Result<(), Error> {
    loan.execute(BEGIN, &[&letter, &key, &by]).await?;
    Ok(())
}

pub(super) async fn released(loan: &Fragile, cursor: &str, most: i64) -> Result<Vec<Redrive>, Error> {
    let statement = loan.prepare_cached(RELEASED).await?;
    let rows = loan.query(&statement, &[&cursor, &most, &RELEASED_BYTES]).await?;
    dead_letter::redrives(&rows)
}

/// Records what became of rows of released keys, and ends the keys of which none is left; commits.
pub(super) async fn unparked(loan: &Fragile, cursor: &str, outcome: &Unparked<'_>) -> Result<(), Error> {
    if !outcome.accepted.is_empty() {
        loan.execute(SENT, &[&cursor, &outcome.accepted]).await?;
    }
    if let Some(refused) = &outcome.refused {
        let letter = dead_letter::bury(loan, cursor, &refused.letter, &refused.error, outcome.by).await?;
        loan.execute(REFUSED, &[&refused.seq, &letter]).await?;
    }
    loan.execute(END, &[&cursor]).await?;
    if outcome.paced {
        dead_letter::paced(loan, cursor, outcome.by).await?;
    }
    loan.batch_execute("COMMIT").await?;
    Ok(())
}
