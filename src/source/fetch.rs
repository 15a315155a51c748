//! Reads one turn's rows: one snapshot, one portal, in pieces.
//!
//! Promise: the rows are those after the position and below the horizon that one snapshot sees, oldest first, and the
//! snapshot is newer than the scan that gave the horizon. The transaction ends when the turn's budget or time is used
//! up, whatever the sink does, so that no lock of ours stays on the application's table.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::{TryStreamExt, pin_mut};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::family::inspect;
use super::shape::{After, Shape};
use crate::batch::Batch;
use crate::database::codec::Raw;
use crate::database::{Error, Loan};
use crate::message::Field;
use crate::position::{Position, Timestamp};

mod types;

use types::Types;
pub use types::types_stand;

/// A batch is handed over when it has this many rows or bytes.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 256 * 1024;
/// The first piece is small, because the rows' size is unknown; later ones grow while the rows stay small.
const FIRST_PIECE: usize = 16;
const LARGEST_PIECE: usize = 4_000;
/// A piece should not bring more than this at once.
const PIECE_BYTES: usize = 2 * 1024 * 1024;

/// How much one fetch may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most rows.
    pub rows: usize,
    /// The most bytes; the row that passes it is the last.
    pub bytes: usize,
    /// The longest time.
    pub time: Duration,
}

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The table.
    pub shape: &'a Shape,
    /// What of each row.
    pub fields: &'a [Field],
    /// The fields are columns whose values are used in the types that the shape says: no row is handed over when they have
    /// others.
    pub typed: bool,
    /// After which position; `None` is before every row.
    pub after: Option<&'a Position>,
    /// Below which instant.
    pub horizon: Timestamp,
    /// The relations that the cursor has known so far; `None` for a new cursor.
    pub known: Option<&'a BTreeSet<u32>>,
    /// The table's oid that the cursor has known so far.
    pub root: Option<u32>,
    /// How much.
    pub budget: Budget,
}

/// How a fetch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// How many rows were handed over.
    pub rows: usize,
    /// Whether the budget ended it, so that more rows may be waiting.
    pub more: bool,
    /// The snapshot that all rows were read with; none when the fetch was cut.
    pub snapshot: Option<String>,
}

/// Why nothing may be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The database said no.
    #[error(transparent)]
    Database(#[from] Error),
    /// The relations differ from those that the horizon was computed for, or the columns' types from those that the sink
    /// was made for: look at the catalogue again.
    #[error("the table's partitions, or the types of its columns, have changed since the scan")]
    FamilyChanged,
    /// The name means another table now.
    #[error(
        "table {table} is another relation now (oid {found:?}, was {known}): it was replaced or renamed. Rename it back, \
         or accept the new one: its rows after the cursor's position will be published"
    )]
    Replaced {
        /// The configured name.
        table: String,
        /// What it means now.
        found: Option<u32>,
        /// What it meant.
        known: u32,
    },
    /// A partition was attached with rows that the cursor has passed already.
    #[error(
        "partition {partition} was attached to {table} with rows at or below the cursor's position {position}: they \
         would never be published. Publish them by hand or move the position back, then resume"
    )]
    AttachedBehind {
        /// The configured table.
        table: String,
        /// The new partition.
        partition: String,
        /// The cursor's position.
        position: String,
    },
    /// A partition with rows that the cursor has not passed is detached, or is being detached.
    #[error(
        "partition {partition} of {table} is detached, and reaches behind the cursor's position {position}: its rows \
         cannot be read, and would be left out"
    )]
    Detached {
        /// The configured table.
        table: String,
        /// The partition.
        partition: String,
        /// The cursor's position.
        position: String,
    },
}

impl From<tokio_postgres::Error> for FetchError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Reads the rows on `reader` and hands them over in order. Stops early, without error, when nobody takes them.
///
/// # Errors
/// See [`FetchError`]. Rows handed over before an error are a true prefix. After an error the connection is not fit for
/// further use.
pub async fn fetch(
    reader: &mut Loan,
    request: Request<'_>,
    batches: UnboundedSender<Batch>,
) -> Result<Fetched, FetchError> {
    let begun = Instant::now();
    let shape = request.shape;
    let after = After::of(request.after);
    let rows_sql = reader.prepare_cached(&shape.fetch_sql(request.fields, after)).await?;
    let facts_sql = reader.prepare_cached(include_str!("sql/snapshot.sql")).await?;
    let types = if request.typed { Types::prepare(reader, shape, request.fields).await? } else { None };
    let transaction =
        reader.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;

    let limit = i64::try_from(request.budget.rows).unwrap_or(i64::MAX);
    let bounds = request.after.map(|position| (position.created_at, position.id.clone()));
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&request.horizon, &limit];
    if let Some((created_at, id)) = &bounds {
        parameters.push(created_at);
        if let Some(id) = id {
            parameters.push(id);
        }
    }
    let name = shape.config.table.quoted();
    // The portal takes the snapshot, after the scan's answer, and locks the table, so that its name cannot move on.
    let table: [&(dyn ToSql + Sync); 2] = [&shape.root, &name];
    let (portal, facts, stand) = tokio::try_join!(
        biased;
        transaction.bind(&rows_sql, &parameters),
        transaction.query_one(&facts_sql, &table),
        types::stand(&transaction, types.as_ref()),
    )?;
    if !stand {
        return Err(FetchError::FamilyChanged);
    }
    let snapshot = inspect(&transaction, &request, &facts).await?;

    let mut pieces = Pieces::new(request.budget);
    let mut batch = Batch::new(request.fields.len());
    let mut more = false;
    'turn: while let Some(piece) = pieces.next() {
        let stream = transaction.query_portal_raw(&portal, i32::try_from(piece).unwrap_or(i32::MAX)).await?;
        pin_mut!(stream);
        let mut got = 0;
        while let Some(row) = stream.try_next().await? {
            got += 1;
            pieces.took(push(&mut batch, &row, request.fields.len())?);
            if (batch.len() >= BATCH_ROWS || batch.bytes() >= BATCH_BYTES)
                && batches.send(std::mem::replace(&mut batch, Batch::new(request.fields.len()))).is_err()
            {
                more = true;
                break 'turn;
            }
            if pieces.spent() || begun.elapsed() >= request.budget.time {
                more = true;
                break 'turn;
            }
        }
        if got < piece {
            break;
        }
    }
    if !batch.is_empty() && batches.send(batch).is_err() {
        more = true;
    }
    transaction.commit().await?;
    Ok(Fetched { rows: pieces.rows, more, snapshot: Some(snapshot) })
}

/// Appends a row; gives its size.
fn push(batch: &mut Batch, row: &Row, fields: usize) -> Result<usize, FetchError> {
    let created_at: Timestamp = row.try_get(0)?;
    let id: &str = row.try_get(1)?;
    let before = batch.bytes();
    let mut failed = None;
    let values = (0..fields).map(|field| match row.try_get::<_, Option<Raw<'_>>>(field + 2) {
        Ok(value) => value.map(|raw| raw.0),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    batch.push(created_at, id, values);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(batch.bytes() - before),
    }
}

/// How many rows to ask for next, by the budget that is left and the size of the rows so far.
struct Pieces {
    budget: Budget,
    rows: usize,
    bytes: usize,
    largest: usize,
    piece: usize,
}

impl Pieces {
    fn new(budget: Budget) -> Self {
        Self { budget, rows: 0, bytes: 0, largest: 1, piece: FIRST_PIECE }
    }

    fn next(&mut self) -> Option<usize> {
        if self.spent() {
            return None;
        }
        let by_size = (PIECE_BYTES / self.largest).max(1);
        let piece = self.piece.min(by_size).min(self.budget.rows - self.rows);
        self.piece = (self.piece * 4).min(LARGEST_PIECE);
        Some(piece)
    }

    fn took(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
        self.largest = self.largest.max(bytes);
    }

    fn spent(&self) -> bool {
        self.rows >= self.budget.rows || self.bytes >= self.budget.bytes
    }
}
