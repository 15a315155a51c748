//! Advance and commit: the end of a turn.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;

use super::ErrorReport;
use super::ahead::{self, Beyond};
use super::audit_slices;
use super::dead_letter::{self, DeadLetter, LateRows};
use super::lock::{LockedCursor, RestsOn, RowPlace};
use super::parked::{self, NewlyParked};
use crate::audit::{Recorded, Slice};
use crate::database::{Error, Fragile};
use crate::position::{Position, Timestamp};

/// COMMIT is sent with it, before its answer is here. So a row that is not there must be an error, which keeps the commit
/// from taking place: [`deleted`] knows it.
const ADVANCE: &str = include_str!("sql/advance.sql");

/// What an advance writes.
#[derive(Clone, Debug)]
pub struct Advance<'a> {
    /// The end of the acknowledged prefix.
    pub position: Option<&'a Position>,
    /// `T_k` of the scan.
    pub observed_at: Timestamp,
    /// The snapshot that the rows were read with, and late rows found; none leaves the stored one, and then the position must not
    /// move.
    pub snapshot: Option<&'a str>,
    /// The number of the column by which late rows were found; none where they are not.
    pub sweep: Option<i16>,
    /// The late rows.
    pub late: Option<LateRows<'a>>,
    /// The table's own oid, then its relations.
    pub relations: (u32, &'a BTreeSet<u32>),
    /// Number of the last seek that is now applied.
    pub seek_applied: i64,
    /// What the cursor belongs to, as JSON.
    pub identity: &'a str,
    /// Over how many partitions keys are spread; none leaves the stored number.
    pub partitions: Option<i32>,
    /// Rows that it passes and that were not published but dead-lettered, for these reasons.
    pub dead: &'a [(&'a DeadLetter<'a>, ErrorReport<'a>)],
    /// The number of one of them, and its key, which is parked with it.
    pub park: Option<(usize, &'a str)>,
    /// Rows of keys that are parked, which it passes.
    pub parked: Option<NewlyParked<'a>>,
    /// What it leaves beyond the position, where rows are sent side by side.
    pub beyond: Option<&'a Beyond>,
    /// What is recorded of the rows that it passes; none where nothing is.
    pub audit: Option<&'a Recorded>,
    /// The rule of the scan, from when on transactions count under a weaker one, and the order of the rows.
    pub rests_on: &'a RestsOn,
    /// This replica's name.
    pub by: &'a str,
    /// Whether the commit waits for the disk. Without it, a crash of PostgreSQL costs duplicates, never rows.
    pub durable: bool,
}

impl Advance<'_> {
    /// The table's own oid, then its relations'.
    pub(super) fn oids(&self) -> Vec<u32> {
        std::iter::once(self.relations.0).chain(self.relations.1.iter().copied()).collect()
    }

    /// The slice that goes on, as the cursor's row has it.
    pub(super) fn open_slice(&self) -> Option<Vec<u8>> {
        self.audit.and_then(|recorded| recorded.open.as_ref()).map(Slice::to_bytes)
    }
}

impl LockedCursor {
    /// Moves the position and commits, which frees the lock; says where the row lies now, and how long each took.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn advance(self, to: Advance<'_>) -> Result<(RowPlace, [Duration; 2]), Error> {
        for (n, (letter, error)) in to.dead.iter().enumerate() {
            let number = dead_letter::bury(&self.connection, &self.name, letter, error, to.by).await?;
            if let Some((_, key)) = to.park.filter(|(at, _)| *at == n) {
                parked::begin(&self.connection, number, key, to.by).await?;
            }
        }
        if let Some(late) = &to.late {
            dead_letter::note_late(&self.connection, &self.name, late, to.by).await?;
        }
        if let Some(new) = &to.parked {
            parked::add(&self.connection, &self.name, new, to.by).await?;
        }
        if let Some(beyond) = to.beyond {
            ahead::leave(&self.connection, &self.name, to.position, beyond, to.by).await?;
        }
        let moved = advance(&self.connection, &self.name, &self.place, &to).await;
        let moved = moved.map_err(|error| deleted(&self.name, error))?;
        self.connection.give_back();
        Ok(moved)
    }
}

/// The error of a statement that reads the parameter `outbox.cursor_row_deleted`, which is never set, because it found no row.
pub(super) fn deleted(name: &str, error: tokio_postgres::Error) -> Error {
    let found_none = error.as_db_error().is_some_and(|error| error.message().contains("outbox.cursor_row_deleted"));
    if found_none { Error::Vanished(name.to_owned()) } else { error.into() }
}

/// Sets whether this transaction's commit waits for the disk.
pub(crate) const fn durability(durable: bool) -> &'static str {
    if durable { "SET LOCAL synchronous_commit TO on" } else { "SET LOCAL synchronous_commit TO off" }
}

async fn advance(
    loan: &Fragile,
    name: &str,
    RowPlace(place): &RowPlace,
    to: &Advance<'_>,
) -> Result<(RowPlace, [Duration; 2]), tokio_postgres::Error> {
    let statement = loan.prepare_cached(ADVANCE).await?;
    let ending = audit_slices::ending(loan, to.audit).await?;
    let created_at = to.position.map(|position| position.created_at);
    let id = to.position.and_then(|position| position.id.as_deref());
    let relations = to.oids();
    let audit = to.open_slice();
    let parameters: [&(dyn ToSql + Sync); 17] = [
        &name,
        &created_at,
        &id,
        &to.observed_at,
        &to.snapshot,
        &relations,
        &to.seek_applied,
        &to.identity,
        &to.by,
        &to.partitions,
        place,
        &to.rests_on.rule,
        &to.rests_on.open_since,
        &to.sweep,
        &to.rests_on.order,
        &audit,
        &to.rests_on.columns,
    ];
    // When the update fails, nothing behind it is carried out, and its error is what is returned. Setting and commit are one
    // message, so that one answer wakes this process, and not two.
    let begun = Instant::now();
    let update = async { Ok((loan.query_one(&statement, &parameters).await?, begun.elapsed())) };
    let commit = format!("{}; COMMIT", durability(to.durable));
    let ended = audit_slices::end(loan, ending.as_ref(), name, to.audit);
    let ((), (updated, advance), ()) = tokio::try_join!(biased; ended, update, loan.batch_execute(&commit))?;
    Ok((RowPlace(updated.try_get(0)?), [advance, begun.elapsed().saturating_sub(advance)]))
}
