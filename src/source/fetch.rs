//! Reads one turn's rows: one read transaction, one snapshot, handed over as they come.
//!
//! Promise: the rows are those after the position and below the horizon that one snapshot sees, oldest first, and the
//! snapshot is newer than the scan that gave the horizon. The transaction ends when the turn's budget or time is used
//! up, whatever the sink does, so that no lock of ours stays on the application's table.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::{TryStreamExt, pin_mut};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, RowStream, Statement};

use super::family::Family;
use super::shape::{After, Shape};
use crate::batch::Batch;
use crate::database::codec::Raw;
use crate::database::{Error, Fragile, Loan};
use crate::message::Field;
use crate::position::{Position, Timestamp};

mod pages;
mod types;

use pages::Pages;
use types::Types;
pub use types::types_stand;

/// A batch is handed over when it has this many rows or bytes.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 256 * 1024;
/// Rows of a page that nobody takes any more are read to their end if they are no more than this; else the connection is
/// given up, which is quicker.
const LEFT_OVER: usize = 1024 * 1024;

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
    /// The relations that the cursor has known so far; `None` for a new cursor, and for rows read ahead: whoever takes
    /// them sees to it that no partition is new to the cursor.
    pub known: Option<&'a BTreeSet<u32>>,
    /// The table's oid that the cursor has known so far.
    pub root: Option<u32>,
    /// How much.
    pub budget: Budget,
    /// The bytes of the largest row to be expected; 0 when nothing is known of the rows.
    pub row_bytes: usize,
}

/// How a fetch ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many rows were handed over.
    pub rows: usize,
    /// Whether the budget ended it, so that more rows may be waiting.
    pub more: bool,
    /// The snapshot that all rows were read with; none when the fetch was cut.
    pub snapshot: Option<String>,
    /// The last row handed over.
    pub last: Option<Position>,
    /// The bytes of the largest row.
    pub row_bytes: usize,
    /// Rows may still be on their way that nobody takes.
    pub left_over: bool,
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

/// Begins the transaction that [`fetch`] reads in. It has no snapshot before the first statement: the scan may still be
/// under way.
///
/// # Errors
/// The database's.
pub async fn begin(reader: &Loan) -> Result<(), Error> {
    Ok(reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
}

/// Ends it and gives the connection back, or closes it when that is quicker.
///
/// # Errors
/// The database's; the connection is closed then.
pub async fn end(reader: Fragile, fetched: &Fetched) -> Result<(), Error> {
    if !fetched.left_over {
        reader.batch_execute("COMMIT").await?;
        reader.give_back();
    }
    Ok(())
}

/// Reads the rows on `reader`, in a transaction that has just begun, and hands them over in order. Stops early, without
/// error, when nobody takes them.
///
/// # Errors
/// See [`FetchError`]. Rows handed over before an error are a true prefix. After an error the connection is not fit for
/// further use.
pub async fn fetch(
    reader: &Loan,
    request: Request<'_>,
    batches: UnboundedSender<Batch>,
) -> Result<Fetched, FetchError> {
    let begun = Instant::now();
    let pager = Pager::prepare(reader, &request).await?;
    let mut pages = Pages::new(request.budget, request.row_bytes);
    let (snapshot, mut rows) = open(reader, &request, &pager, pages.next()).await?;
    let mut hand = Hand { batches, batch: Batch::new(request.fields.len()), last: None };
    let mut more = false;
    let mut left_over = false;
    'turn: while let Some((page, stream)) = rows.take() {
        pin_mut!(stream);
        let mut got = 0;
        while let Some(row) = stream.try_next().await? {
            got += 1;
            pages.took(push(&mut hand.batch, &row, request.fields.len())?);
            let full = hand.batch.len() >= BATCH_ROWS || hand.batch.bytes() >= BATCH_BYTES;
            let over = full && (!hand.over() || begun.elapsed() >= request.budget.time);
            if over || pages.spent() {
                more = true;
                left_over = (page - got).saturating_mul(pages.largest()) > LEFT_OVER;
                break 'turn;
            }
        }
        if got == page
            && let Some(page) = pages.next()
        {
            hand.over();
            rows = Some((page, pager.page(reader, &request, hand.last.as_ref(), page).await?));
        }
    }
    more |= !hand.over();
    let (rows, row_bytes) = (pages.rows(), pages.largest());
    Ok(Fetched { rows, more, snapshot: Some(snapshot), last: hand.last, row_bytes, left_over })
}

/// The statements that read pages.
struct Pager {
    first: Statement,
    next: Statement,
}

impl Pager {
    async fn prepare(reader: &Loan, request: &Request<'_>) -> Result<Self, FetchError> {
        let sql = |after| request.shape.fetch_sql(request.fields, after);
        let next = reader.prepare_cached(&sql(After::Row)).await?;
        let first = match After::of(request.after) {
            After::Row => next.clone(),
            after => reader.prepare_cached(&sql(after)).await?,
        };
        Ok(Self { first, next })
    }

    /// At most `rows` rows after a position of this fetch, or after the one that it began at.
    async fn page(
        &self,
        reader: &Loan,
        request: &Request<'_>,
        last: Option<&Position>,
        rows: usize,
    ) -> Result<RowStream, tokio_postgres::Error> {
        let limit = i64::try_from(rows).unwrap_or(i64::MAX);
        let (statement, after) = match last {
            Some(last) => (&self.next, Some(last)),
            None => (&self.first, request.after),
        };
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&request.horizon, &limit];
        if let Some(position) = after {
            parameters.push(&position.created_at);
            if let Some(id) = &position.id {
                parameters.push(id);
            }
        }
        reader.query_raw(statement, parameters).await
    }
}

/// Takes the snapshot and the table's lock, so that its name cannot move on, looks whether it is the right table, and asks
/// for the first page; gives the snapshot's text.
async fn open(
    reader: &Loan,
    request: &Request<'_>,
    pager: &Pager,
    first: Option<usize>,
) -> Result<(String, Option<(usize, RowStream)>), FetchError> {
    let family = Family::prepare(reader, request).await?;
    let types = if request.typed { Types::prepare(reader, request.shape, request.fields).await? } else { None };
    let page = async {
        match first.filter(|_| !family.has_news()) {
            Some(rows) => pager.page(reader, request, None, rows).await.map(|stream| Some((rows, stream))),
            None => Ok(None),
        }
    };
    // Sent at once, run one after the other: nothing of the page is looked at before the answers to the others.
    let (facts, stand, page) = tokio::try_join!(
        biased;
        family.ask(reader, request.shape),
        async { Ok(types::stand(reader, types.as_ref()).await?) },
        async { Ok(page.await?) },
    )?;
    if !stand {
        return Err(FetchError::FamilyChanged);
    }
    let snapshot = family.judge(reader, request, facts).await?;
    let page = match (page, first) {
        (None, Some(rows)) => Some((rows, pager.page(reader, request, None, rows).await?)),
        (page, _) => page,
    };
    Ok((snapshot, page))
}

/// Where rows go.
struct Hand {
    batches: UnboundedSender<Batch>,
    batch: Batch,
    /// The last row of the last batch.
    last: Option<Position>,
}

impl Hand {
    /// Hands over what has gathered; false when nobody takes it any more.
    fn over(&mut self) -> bool {
        let Some(row) = self.batch.len().checked_sub(1) else { return true };
        self.last = Some(self.batch.position(row));
        let next = self.batch.successor();
        self.batches.send(std::mem::replace(&mut self.batch, next)).is_ok()
    }
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
