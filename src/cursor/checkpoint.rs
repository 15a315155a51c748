//! How far the rows of a turn that still runs have been acknowledged, as a row of `outbox.checkpoint`.
//!
//! The turn's own transaction keeps the cursor's row locked until its end, so this is written by another session, in a
//! transaction of its own. Promise: a checkpoint counts only for the very version of the cursor's row that its turn has locked;
//! any advance, seek or adoption makes another version. So one that is written too late, by a turn that has lost its lock, or that
//! has ended meanwhile, says nothing false: up to there the rows were acknowledged in order, and read with its snapshot.

use tokio_postgres::types::ToSql;

use super::lock::LockedCursor;
use super::{RestsOn, position};
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};

const WRITE: &str = include_str!("sql/checkpoint_write.sql");

const RESUME: &str = include_str!("sql/checkpoint_resume.sql");

/// What is the same for all checkpoints of a turn.
#[derive(Clone, Debug)]
pub struct CheckpointFacts {
    /// The cursor's name.
    pub cursor: String,
    /// The version of its row that the turn has locked.
    pub base: String,
    /// `T_k` of the scan.
    pub observed_at: Timestamp,
    /// The table's own oid, then its relations'.
    pub relations: Vec<u32>,
    /// Over how many partitions keys are spread; none leaves the stored number.
    pub partitions: Option<i32>,
    /// The rule of the scan, and from when on transactions count under a weaker one.
    pub rests_on: RestsOn,
    /// This replica's name.
    pub by: String,
}

/// What a turn finds that one before it has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Where the cursor stands now.
    pub position: Option<Position>,
    /// Over how many rows of the earlier turn it has moved.
    pub rows: usize,
    /// The replica that ran it.
    pub by: String,
}

/// Records that the first `rows` rows of a turn, up to `end`, were acknowledged; `snapshot` is what they were read with.
///
/// # Errors
/// The database's; nothing depends on it but how many rows a crash repeats.
pub async fn write(
    session: &Session,
    facts: &CheckpointFacts,
    (rows, end): (usize, &Position),
    snapshot: &str,
) -> Result<(), Error> {
    let statement = session.prepare_cached(WRITE).await?;
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let parameters: [&(dyn ToSql + Sync); 12] = [
        &facts.cursor,
        &facts.base,
        &end.created_at,
        &end.id,
        &rows,
        &facts.observed_at,
        &snapshot,
        &facts.relations,
        &facts.partitions,
        &facts.rests_on.rule,
        &facts.rests_on.open_since,
        &facts.by,
    ];
    session.execute(&statement, &parameters).await?;
    Ok(())
}

impl LockedCursor {
    /// Moves the cursor to the checkpoint of the turn that had it locked and did not advance, and commits, which frees the lock.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn resume(self, durable: bool, by: &str) -> Result<Resumed, Error> {
        let statement = self.connection.prepare_cached(RESUME).await?;
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.name, &self.place.0, &by, &self.version];
        let row = self.connection.query_one(&statement, &parameters).await?;
        let commit = format!("{}; COMMIT", super::advance::durability(durable));
        self.connection.batch_execute(&commit).await?;
        let rows: i64 = row.try_get(2)?;
        let resumed = Resumed {
            position: position(row.try_get(0)?, row.try_get(1)?),
            rows: usize::try_from(rows).unwrap_or(0),
            by: row.try_get(3)?,
        };
        self.connection.give_back();
        Ok(resumed)
    }
}
