//! Reads one turn's rows: one read transaction, one snapshot, handed over as they come.
//!
//! Promise: the rows are those after the position and below the horizon that one snapshot sees, oldest first, and the
//! snapshot is newer than the scan that gave the horizon. The transaction ends when the turn's budget or time is used
//! up, whatever the sink does, so that no lock of ours stays on the application's table.

use std::time::{Duration, Instant};

use futures_util::{TryStreamExt, pin_mut};
use tokio::sync::oneshot;

use super::{away, family};
use crate::batch::Batch;
use crate::database::{Error, Fragile, Loan};
use crate::position::Position;

mod columns;
mod document;
mod error;
mod handoff;
mod large;
mod pages;
mod questions;
mod request;
mod slow;
mod sweep;
mod types;
mod unreadable;

pub use document::Malformed;
pub use error::FetchError;
use handoff::Given;
pub use handoff::{Giver, Last, Room, Taker, handoff};
pub use large::{WantedRow, too_large};
use pages::Pages;
use questions::{Opening, Questions};
pub use request::{Budget, Request, Sizes, Texts};
pub use sweep::SweepRequest;
pub use types::{columns_stand, types_stand};
pub use unreadable::Unreadable;

/// A batch is handed over when it has this many rows or bytes.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 256 * 1024;
/// Rows of a page that nobody takes any more are read to their end if they are no more than this; else the connection is
/// given up, which is quicker.
const LEFT_OVER: usize = 1024 * 1024;
/// A connection that has read a row of more bytes than this keeps a buffer of its size, and is closed for it.
const LARGE: usize = 4 * 1024 * 1024;
/// They are counted by the mean row; where they were larger, and take longer than this, the connection is given up after all.
const DRAIN: Duration = Duration::from_secs(1);

/// How a fetch ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many rows were handed over.
    pub rows: usize,
    /// Whether more rows may be waiting.
    pub more: bool,
    /// Whether the budget of rows or bytes ended it.
    pub spent: bool,
    /// The snapshot that all rows were read with; none when the fetch was cut.
    pub snapshot: Option<String>,
    /// The last row handed over.
    pub last: Option<Position>,
    /// How large they were.
    pub sizes: Sizes,
    /// The connection is to be closed: it keeps too large a buffer, or closing it is quicker than reading rows that are not taken any more.
    pub left_over: bool,
    /// The transaction has ended.
    pub ended: bool,
}

/// Ends the transaction that [`fetch`] has read in and gives the connection back, or closes it when that is quicker.
///
/// # Errors
/// The database's; the connection is closed then.
pub async fn end(reader: Fragile, fetched: &Fetched) -> Result<(), Error> {
    if fetched.left_over {
        let closed = reader.closed();
        drop(reader);
        // Its buffer is given back before its rows are published.
        let _ = tokio::time::timeout(DRAIN, closed.cancelled()).await;
        return Ok(());
    }
    if !fetched.ended {
        match tokio::time::timeout(DRAIN, reader.batch_execute("COMMIT")).await {
            Ok(end) => end?,
            Err(_) => return Ok(()),
        }
    }
    reader.give_back();
    Ok(())
}

/// Reads the rows on `reader`, in a transaction of its own, and hands them over in order. Stops early, without error, when
/// they are not taken, or not soon enough; and behind a large row, which `batches` keeps until [`end`] has closed the connection.
///
/// # Errors
/// See [`FetchError`]. Rows handed over before an error are a true prefix. After an error the connection is not fit for
/// further use.
pub async fn fetch(reader: &Loan, mut request: Request<'_>, batches: &mut Giver) -> Result<Fetched, FetchError> {
    request.server.same_as(&reader.server)?;
    // What is on its way out of the ready-made outbox, a statement of its own tells.
    if !family::is_message(request.shape) {
        away::refuse(reader, &request).await?;
    }
    if let Some(limit) = request.alone {
        if let Some(row) = slow::find(reader, &request, limit).await? {
            return Err(FetchError::Unreadable(row));
        }
        // It is another one that is slow, among those that are read with this one.
        request.budget.rows = request.budget.rows.min(1);
    }
    let questions = Questions::prepare(reader, &request).await?;
    let pages = Pages::new(request.budget, request.sizes);
    // Nothing can follow a page that has room for the whole budget: its end is sent with it.
    let only_page = pages.next() == Some(request.budget.rows) && !questions.family.has_news();
    let mut ended = false;
    let mut fetched = {
        let (last_asked, asked) = oneshot::channel();
        let reading = read(reader, &request, &questions, pages, batches, last_asked);
        let ending = async {
            // A row that came late is asked for when one is known to be there: the end goes behind that.
            let _ = asked.await;
            reader.batch_execute("COMMIT").await
        };
        pin_mut!(reading, ending);
        let mut fetched = loop {
            tokio::select! {
                // The reading sends all it has to say when it is asked for the first time.
                biased;
                fetched = &mut reading => break fetched?,
                end = &mut ending, if only_page && !ended => {
                    end?;
                    ended = true;
                }
            }
        };
        if only_page && !ended && !fetched.left_over {
            match tokio::time::timeout(DRAIN, ending).await {
                Ok(end) => {
                    end?;
                    ended = true;
                }
                Err(_) => fetched.left_over = true,
            }
        }
        fetched
    };
    fetched.ended = ended;
    Ok(fetched)
}

async fn read(
    reader: &Loan,
    request: &Request<'_>,
    questions: &Questions<'_>,
    mut pages: Pages,
    batches: &mut Giver,
    last_asked: oneshot::Sender<()>,
) -> Result<Fetched, FetchError> {
    let until = Instant::now() + request.budget.time;
    let opening = questions.open(reader, request, pages.next(), batches, last_asked).await?;
    let Some(Opening { snapshot, page: mut rows, is_whole }) = opening else {
        return Ok(Fetched { more: true, left_over: true, ..Fetched::default() });
    };
    let mut hand = Hand { batches, until, batch: Batch::new(request.fields.len()), last: None };
    let (mut more, mut left_over, mut large) = (!is_whole, false, false);
    'turn: while let Some((page, stream)) = rows.take() {
        pin_mut!(stream);
        let (asked, mut got) = (Instant::now(), 0);
        loop {
            let row = match stream.try_next().await {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => return Err(hand.failed(reader, request, error.into()).await),
            };
            got += 1;
            match questions.pager.columns().push(&mut hand.batch, &row) {
                Ok(size) => {
                    pages.took(size);
                    large = size > LARGE;
                }
                Err(error) => return Err(hand.failed(reader, request, error).await),
            }
            if large {
                more = true;
                hand.keep();
                break 'turn;
            }
            let full = hand.batch.len() >= BATCH_ROWS || hand.batch.bytes() >= BATCH_BYTES;
            let over = full && (hand.over().await != Given::InTime || Instant::now() >= until);
            if over || pages.spent() {
                more = true;
                left_over = (page - got).saturating_mul(pages.mean()) > LEFT_OVER;
                break 'turn;
            }
        }
        if got == page
            && let Some(page) = pages.next()
        {
            // One more page that took as long would be cut, and what was left of it thrown away.
            if hand.over().await != Given::InTime || Instant::now() + asked.elapsed() > until {
                more = true;
                break 'turn;
            }
            rows = Some((page, questions.pager.next_page(reader, request, hand.last.as_ref(), page).await?));
        }
    }
    more |= hand.over().await == Given::Unwanted;
    Ok(Fetched {
        rows: pages.rows(),
        more,
        spent: pages.spent(),
        snapshot: Some(snapshot),
        last: hand.last,
        sizes: pages.sizes(),
        left_over: left_over || large,
        ended: false,
    })
}

/// Where rows go.
struct Hand<'a> {
    batches: &'a mut Giver,
    /// The end of the reading's time.
    until: Instant,
    batch: Batch,
    /// The last row of the last batch.
    last: Option<Position>,
}

impl Hand<'_> {
    /// Hands over the rows before one that failed, which are sound; gives the error, with that row's name if it is about
    /// the row.
    async fn failed(&mut self, reader: &Loan, request: &Request<'_>, error: FetchError) -> FetchError {
        self.over().await;
        unreadable::named(reader, request, self.last.as_ref(), error).await
    }

    /// Keeps what has gathered, for when the connection is closed.
    fn keep(&mut self) {
        let Some(row) = self.batch.len().checked_sub(1) else { return };
        self.last = Some(self.batch.position(row));
        let next = Batch::new(0);
        self.batches.keep(std::mem::replace(&mut self.batch, next));
    }

    /// Hands over what has gathered.
    async fn over(&mut self) -> Given {
        let Some(row) = self.batch.len().checked_sub(1) else { return Given::InTime };
        self.last = Some(self.batch.position(row));
        let next = self.batch.successor();
        self.batches.give(std::mem::replace(&mut self.batch, next), self.until).await
    }
}
