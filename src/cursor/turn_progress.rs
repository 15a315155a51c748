//! How far the rows of a turn that still runs have been acknowledged, as a row of `outbox.turn_progress`.
//!
//! The turn's own transaction keeps the cursor's row locked until its end, so this is written by another session, in a
//! transaction of its own. Promise: it counts only for the very version of the cursor's row that its turn has locked; any advance,
//! seek or adoption makes another version. It is written on the server of that lock, and only while no other transaction has locked
//! the row since. So what is written late, by a turn that has lost its lock or has ended, says nothing false: up to there the rows
//! were acknowledged in order, and read with its snapshot.

use tokio_postgres::types::ToSql;

use super::audit_slices;
use super::lock::{LockedCursor, RowPlace};
use super::{RestsOn, position};
use crate::database::{Error, Server, Session};
use crate::position::{Position, Timestamp};

const WRITE: &str = include_str!("sql/turn_progress_write.sql");

const RESUME: &str = include_str!("sql/turn_progress_resume.sql");

/// The row version that a turn has locked, and the lock.
#[derive(Clone, Debug)]
pub struct TurnLock {
    /// Names the locked version of the row, and no other.
    pub(super) version: String,
    /// Where it lies.
    pub(super) place: RowPlace,
    /// The transaction that has locked it.
    pub(super) transaction: String,
    /// On which server.
    pub(super) server: Server,
}

/// What is the same for all that a turn records.
#[derive(Clone, Debug)]
pub struct TurnFacts {
    /// The cursor's name.
    pub cursor: String,
    /// What the turn has locked.
    pub lock: TurnLock,
    /// `T_k` of the scan.
    pub observed_at: Timestamp,
    /// The table's own oid, then its relations'.
    pub relations: Vec<u32>,
    /// Over how many partitions keys are spread; none leaves the stored number.
    pub partitions: Option<i32>,
    /// The rule of the scan, and from when on transactions count under a weaker one.
    pub rests_on: RestsOn,
    /// The number of the column by which late rows are found; none where they are not.
    pub sweep: Option<i16>,
    /// This replica's name.
    pub by: String,
}

/// What a turn finds that one before it has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Over how many rows of the earlier turn the cursor has moved.
    pub rows: usize,
    /// The replica that ran it.
    pub by: String,
}

/// Records that the first `rows` rows of a turn, up to `end`, were acknowledged; `snapshot` is what they were read with. Does nothing
/// when another transaction has locked the cursor since.
///
/// # Errors
/// The database's, or another server; nothing depends on it but how many rows a crash repeats.
pub async fn write(
    session: &Session,
    facts: &TurnFacts,
    (rows, end): (usize, &Position),
    snapshot: &str,
) -> Result<(), Error> {
    facts.lock.server.same_as(&session.server)?;
    let statement = session.prepare_cached(WRITE).await?;
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    session.execute(&statement, &parameters(facts, (&end.created_at, &end.id), &rows, &snapshot)).await?;
    Ok(())
}

/// What both statements take that record a turn's progress, in the order of their numbers.
pub(super) fn parameters<'a>(
    facts: &'a TurnFacts,
    (created_at, id): (&'a (dyn ToSql + Sync), &'a (dyn ToSql + Sync)),
    rows: &'a i64,
    snapshot: &'a (dyn ToSql + Sync),
) -> [&'a (dyn ToSql + Sync); 15] {
    [
        &facts.cursor,
        &facts.lock.version,
        created_at,
        id,
        rows,
        &facts.observed_at,
        snapshot,
        &facts.relations,
        &facts.partitions,
        &facts.rests_on.rule,
        &facts.rests_on.open_since,
        &facts.by,
        &facts.lock.place.0,
        &facts.lock.transaction,
        &facts.sweep,
    ]
}

impl LockedCursor {
    /// What a turn's records are bound to.
    #[must_use]
    pub fn turn_lock(&self) -> TurnLock {
        TurnLock {
            version: self.version.clone(),
            place: self.place.clone(),
            transaction: self.transaction_id.clone(),
            server: self.server().clone(),
        }
    }

    /// Moves the cursor to where a turn had come that had it locked and did not advance, and commits, which frees the lock. None when
    /// that is not there any more. With `reads`, which is what the turns read, it is recorded between which places rows were passed; also
    /// without it, if another replica has recorded what it passed before: what is in no slice would be taken for passed by none.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn resume(self, durable: bool, reads: Option<u64>, by: &str) -> Result<Option<Resumed>, Error> {
        let statement = self.connection.prepare_cached(RESUME).await?;
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.name, &self.place.0, &by, &self.version];
        let Some(row) = self.connection.query_opt(&statement, &parameters).await? else {
            self.release().await?;
            return Ok(None);
        };
        let rows: i64 = row.try_get(0)?;
        let reads = reads.or_else(|| self.audit.as_ref().map(|slice| slice.reads));
        if let (Some(reads), Some(to)) = (reads, position(row.try_get(2)?, row.try_get(3)?)) {
            audit_slices::unnamed(&self.connection, &self.name, reads, (self.position.as_ref(), &to), rows).await?;
        }
        let commit = format!("{}; COMMIT", super::advance::durability(durable));
        self.connection.batch_execute(&commit).await?;
        let resumed = Resumed { rows: usize::try_from(rows).unwrap_or(0), by: row.try_get(1)? };
        self.connection.give_back();
        Ok(Some(resumed))
    }
}
