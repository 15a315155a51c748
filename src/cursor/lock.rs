//! A cursor's lock: the transaction that all else of a turn happens in.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tokio_util::sync::CancellationToken;

use super::reserve::{self, InFlight};
use super::status::HaltScope;
use super::{CursorChange, position};
use crate::audit::Slice;
use crate::database::{Error, Fragile, Loan, Server};
use crate::late::Swept;
use crate::position::{Position, Timestamp};

mod letters;

/// Locks the row that a condition finds. Instants are read as they are: PostgreSQL would make numbers of them.
macro_rules! lock {
    ($condition:literal) => {
        concat!(
            "SELECT position_created_at, position_id, observed_at, relations, seek_applied, \
             identity IS NULL OR identity = $2::text::jsonb, \
             CASE WHEN advanced_by IS NOT NULL THEN advanced_at END, partitions, \
             token ->> 'by', CASE WHEN token IS NOT NULL THEN COALESCE(pg_catalog.jsonb_array_length(token -> 'rows'), 0) END, \
             ctid::text, rule, open_since, created_at, \
             xmin::text, pg_catalog.pg_current_xact_id()::text, \
             CASE WHEN swept_at IS NOT DISTINCT FROM advanced_at THEN snapshot::text END, swept_column, \
             pg_catalog.clock_timestamp(), updated_at, position_order, audit, position_columns \
             FROM outbox.cursor WHERE ",
            $condition,
            " FOR UPDATE SKIP LOCKED"
        )
    };
}

/// The advance writes the tables: who keeps others from that, by CREATE INDEX for example, is found before anything is published.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; LOCK TABLE outbox.cursor, outbox.audit_slice IN ROW EXCLUSIVE MODE";

const LOCK: &str = lock!("name = $1");
/// Where an old snapshot keeps the dead versions of the row, the way by its name leads past all of them. Who advanced last
/// knows where its newest version lies.
const LOCK_AT: &str = lock!("ctid = $3::text::tid AND name = $1");

const CONTROL: &str = include_str!("sql/lock_control.sql");

/// A lock of the transaction, so that it ends with the turn, also behind a pooler. Who looked before the last try is late.
const PROBE: &str = include_str!("sql/lock_probe.sql");

/// Where a version of a cursor's row lies (`ctid`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace(pub(super) String);

/// What a position rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestsOn {
    /// The horizon rule's word; none of a cursor that is older than the column and has not advanced since.
    pub rule: Option<String>,
    /// No transaction that was open at the last advance, or began later, has an earlier start; none when that is not known.
    pub open_since: Option<Timestamp>,
    /// What it was compared by; none of a cursor that is older than the column and has not advanced since.
    pub order: Option<String>,
    /// The numbers of the columns that it was compared by; none likewise.
    pub columns: Option<Vec<i16>>,
}

/// A cursor whose row this process has locked. Dropping it without [`Self::advance`] or [`Self::release`] closes the
/// connection, so that the lock is free at once, also after a panic.
#[derive(Debug)]
pub struct LockedCursor {
    pub(super) name: String,
    pub(super) connection: Fragile,
    closed: CancellationToken,
    /// Where the locked version of the row lies.
    pub(super) place: RowPlace,
    /// Names the locked version of the row, and no other: what a turn records of its progress counts for one version only.
    pub(super) version: String,
    /// The transaction that holds the lock.
    pub(super) transaction_id: String,
    /// A turn that had this version locked has recorded how far it had come, and did not advance.
    pub resumes: bool,
    /// Where it stands; `None` is before every row.
    pub position: Option<Position>,
    /// The database's clock at the scan of the last advance.
    pub observed_at: Option<Timestamp>,
    /// Up to where the late rows at or below its position have been found.
    pub swept: Option<Swept>,
    /// When the cursor was created.
    pub created_at: Timestamp,
    /// What is being recorded of the rows that it passes.
    pub audit: Option<Slice>,
    /// How long ago it last advanced, whoever advanced it.
    pub rested: Option<Duration>,
    /// The relations it has known; the table's own oid first.
    pub relations: Option<(u32, BTreeSet<u32>)>,
    /// What its position rests on.
    pub rests_on: RestsOn,
    /// Number of the last seek that was applied.
    pub seek_applied: i64,
    /// It belongs to something else than the relay is configured for.
    pub foreign: bool,
    /// An operator has paused it.
    pub paused: bool,
    /// It is halted: for these replicas.
    pub halted: Option<HaltScope>,
    /// What an operator wants of it.
    pub change: Option<CursorChange>,
    /// Over how many partitions its keys have been spread.
    pub partitions: Option<i32>,
    /// An operator wants dead letters to be sent again.
    pub redrive: bool,
    /// Keys are parked.
    pub parks: bool,
    /// Rows beyond the position may have been acknowledged.
    pub has_ahead: bool,
    /// Somebody has rows of it in flight (`at_most_once`), or had when he ended: nothing else may be done before they are
    /// recorded.
    pub in_flight: Option<InFlight>,
    /// This transaction has already recorded how the sending of reserved rows ended: it is committed in any case.
    pub(super) settles: bool,
}

impl LockedCursor {
    /// Locks the cursor's row, if nobody else has. `identity` is what the relay is configured for, as JSON; `place` is
    /// where this process left the row, if it has advanced it before.
    ///
    /// # Errors
    /// The database's; the connection is closed then.
    pub async fn lock(loan: Loan, name: &str, identity: &str, place: Option<&RowPlace>) -> Result<Option<Self>, Error> {
        let connection = Fragile::new(loan);
        if let Some(place) = place
            && let Some((row, control)) = Self::try_lock(&connection, name, identity, Some(place)).await?
        {
            return Self::read(name, connection, &row, &control).map(Some);
        }
        if place.is_some() {
            // Another has it, or has advanced it since: the way by its name tells.
            connection.batch_execute("ROLLBACK").await?;
        }
        let Some((row, control)) = Self::try_lock(&connection, name, identity, None).await? else {
            connection.batch_execute("ROLLBACK").await?;
            connection.give_back();
            return Ok(None);
        };
        Self::read(name, connection, &row, &control).map(Some)
    }

    async fn try_lock(
        loan: &Fragile,
        name: &str,
        identity: &str,
        place: Option<&RowPlace>,
    ) -> Result<Option<(Row, Row)>, tokio_postgres::Error> {
        let lock = loan.prepare_cached(if place.is_some() { LOCK_AT } else { LOCK }).await?;
        let control = loan.prepare_cached(CONTROL).await?;
        let mut cursor: Vec<&(dyn ToSql + Sync)> = vec![&name, &identity];
        if let Some(RowPlace(place)) = place {
            cursor.push(place);
        }
        let names: [&(dyn ToSql + Sync); 1] = [&name];
        // Sent at once, run one after the other; each statement has its own snapshot, so what an operator has committed
        // before the lock was taken is seen. Isolation and mode are explicit: a role's defaults do not count.
        let ((), row, control) = tokio::try_join!(
            biased;
            loan.batch_execute(BEGIN),
            loan.query_opt(&lock, &cursor),
            loan.query_one(&control, &names),
        )?;
        Ok(row.map(|row| (row, control)))
    }

    fn read(name: &str, connection: Fragile, row: &Row, control: &Row) -> Result<Self, Error> {
        let closed = connection.closed();
        let relations: Option<Vec<u32>> = row.try_get(3)?;
        let seek_applied: i64 = row.try_get(4)?;
        let known: bool = row.try_get(5)?;
        let (now, advanced): (Timestamp, Option<Timestamp>) = (row.try_get(18)?, row.try_get(6)?);
        let halted: Option<bool> = control.try_get(1)?;
        let (fingerprint, code): (Option<String>, Option<&str>) = (control.try_get(2)?, control.try_get(14)?);
        let (xmin, updated): (String, Timestamp) = (row.try_get(14)?, row.try_get(19)?);
        let (version, recorded) =
            (format!("{xmin} {}", updated.unix_micros()), control.try_get::<_, Option<String>>(11)?);
        Ok(Self {
            name: name.to_owned(),
            position: position(row.try_get(0)?, row.try_get(1)?),
            observed_at: row.try_get(2)?,
            created_at: row.try_get(13)?,
            swept: swept(row.try_get(16)?, row.try_get(17)?),
            audit: row.try_get::<_, Option<&[u8]>>(21)?.and_then(Slice::from_bytes),
            rested: advanced.map(|advanced| now.since(advanced)),
            relations: relations
                .and_then(|oids| Some((*oids.first()?, oids.into_iter().skip(1).collect::<BTreeSet<_>>()))),
            seek_applied,
            foreign: !known,
            paused: control.try_get::<_, Option<bool>>(0)?.unwrap_or(false),
            halted: halted.unwrap_or(false).then(|| HaltScope::new(fingerprint, code)),
            change: CursorChange::read(control, 3, seek_applied)?,
            partitions: row.try_get(7)?,
            redrive: control.try_get(10)?,
            parks: control.try_get(12)?,
            has_ahead: control.try_get(13)?,
            in_flight: reserve::in_flight(row, 8)?,
            place: RowPlace(row.try_get(10)?),
            resumes: recorded.as_ref() == Some(&version),
            version,
            transaction_id: row.try_get(15)?,
            rests_on: RestsOn {
                rule: row.try_get(11)?,
                open_since: row.try_get(12)?,
                order: row.try_get(20)?,
                columns: row.try_get(22)?,
            },
            connection,
            closed,
            settles: false,
        })
    }

    /// Reads a cursor that this transaction has locked and changed: where its row lies now, and all else. It is committed in any case.
    pub(super) async fn settling(connection: Fragile, name: &str, identity: &str) -> Result<Self, Error> {
        let (lock, control) = (connection.prepare_cached(LOCK).await?, connection.prepare_cached(CONTROL).await?);
        let row = connection.query_opt(&lock, &[&name, &identity]).await?;
        let row = row.ok_or_else(|| Error::Vanished(name.to_owned()))?;
        let control = connection.query_one(&control, &[&name]).await?;
        Ok(Self { settles: true, ..Self::read(name, connection, &row, &control)? })
    }

    /// The cursor's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server that the lock is held on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.connection.server
    }

    /// The transaction that holds the lock: what is changed in it is committed by [`Self::advance`] or
    /// [`Self::redriven`], and undone otherwise.
    #[must_use]
    pub fn transaction(&self) -> &ClientWrapper {
        &self.connection
    }

    /// Ends when the connection does, and the lock with it.
    #[must_use]
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Whether this turn may try a sink that is out: until it ends, no turn of another replica may, of whichever cursor;
    /// and nobody has tried since this one `looked`.
    ///
    /// # Errors
    /// The database's.
    pub async fn may_probe(&self, circuit: &str, looked: Timestamp) -> Result<bool, Error> {
        may_probe(&self.connection, &self.name, circuit, looked).await
    }

    /// Frees the lock and leaves everything as it is; how the sending of reserved rows ended is committed all the same.
    ///
    /// # Errors
    /// The database's; the lock is free then, too.
    pub async fn release(self) -> Result<(), Error> {
        self.connection.batch_execute(if self.settles { "COMMIT" } else { "ROLLBACK" }).await?;
        self.connection.give_back();
        Ok(())
    }
}

pub(super) fn swept(snapshot: Option<String>, column: Option<i16>) -> Option<Swept> {
    Some(Swept { snapshot: snapshot?, column: column? })
}

pub(super) async fn may_probe(
    connection: &Fragile,
    name: &str,
    circuit: &str,
    looked: Timestamp,
) -> Result<bool, Error> {
    let statement = connection.prepare_cached(PROBE).await?;
    Ok(connection.query_one(&statement, &[&circuit, &name, &looked]).await?.try_get(0)?)
}
