//! Claims due rows, in the transaction that locks the relay's cursor; the statement is [`Due::claim_sql`].

use std::collections::HashSet;
use std::time::Instant;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PendingWork;
use super::job::PendingJob;
use super::names;
use super::poll::{PendingPoll, taking};
use super::prepare::PreparedPending;
use crate::batch::Batch;
use crate::cursor::{LockedCursor, Taking};
use crate::database::Error;
use crate::database::codec::Raw;
use crate::jobs::Settlement;
use crate::jobs::due_rows::{ClaimedRow, Withdrawal};
use crate::message::Field;
use crate::position::Timestamp;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::pause;
use crate::relay::engine::report;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::Claim;
use crate::sink::Failure;
use crate::source;
use crate::source::lane::Reach;
use crate::source::pending::{Due, Key};

/// The dead letters that are to be sent again: their messages' ids, and when their rows were due.
type Redriven = HashSet<(String, Timestamp)>;

/// What a claim came to.
#[derive(Debug, Default)]
pub(super) struct ClaimedRows {
    pub(super) jobs: Vec<PendingJob>,
    /// This row cannot be marked first: setting its mark changes nothing.
    pub(super) unmarkable: Option<Key>,
    /// Something may have been recorded, also with no row claimed; only a claim in vain leaves no trace.
    pub(super) touched: bool,
}

/// Claims rows; under `at_most_once`, marks them.
pub(super) async fn claim(claim: Claim<'_, PendingWork>) -> Result<ClaimedRows, Error> {
    let Claim { engine, prepared, cursor, found, room, probes } = claim;
    let mut builder = PendingClaimBuilder {
        engine,
        prepared,
        poll: found,
        probes,
        unmarkable: None,
        token: format!("{:032x}", fastrand::u128(..)),
    };
    let allowed = prepared.size.allowed();
    let rows = prepared.size.begin(room);
    let jobs = builder.rows(cursor, rows).await?;
    prepared.size.succeeded(rows, allowed);
    let touched = found.expired || found.waits || found.redrive;
    Ok(ClaimedRows { jobs, unmarkable: builder.unmarkable, touched })
}

/// Lets the first row wait that could be claimed: under at_most_once the server refuses to mark it, and it must not stand in
/// the way of others.
pub(super) async fn put_off(
    engine: &Engine,
    prepared: &PreparedPending,
    poll: &PendingPoll,
    failure: &Failure,
) -> Result<(), Error> {
    let Single { connection, right: _right } = engine.single().await?;
    let locking = LockedCursor::lock(connection, &prepared.config.name, &prepared.seat.identity, None);
    let Some(cursor) = within(engine, locking).await? else { return Ok(()) };
    let token = format!("{:032x}", fastrand::u128(..));
    let claiming = PendingClaimBuilder { engine, prepared, poll, probes: false, unmarkable: None, token };
    claiming.lapse(&cursor).await?;
    let rows = within(engine, claiming.first(&cursor, &[], source::pending::Taking::MarkLater, 1)).await?;
    if !within(engine, names::hold_for_claim(&prepared.due, &cursor)).await? {
        return within(engine, cursor.release()).await;
    }
    within(engine, cursor.claimed(&engine.replica, true)).await?;
    let waiting = async {
        // The claim has given its own back.
        let settlement = Settlement::begin(engine.connection().await?, true).await?;
        for row in &rows {
            let (key, attempts): (Vec<String>, i32) = (row.try_get(0)?, row.try_get(2)?);
            let claim = ClaimedRow { relay: &prepared.config.name, key: &key, token: &claiming.token };
            settlement.wait(claim, &report::error(failure, None), 1, pause(attempts, failure)).await?;
            let (cursor, key) = (&prepared.config.name, Key(key).message_id());
            tracing::warn!(
                cursor,
                key,
                code = failure.code,
                error = failure.message,
                hint = failure.hint,
                "row put off"
            );
        }
        settlement.commit().await
    };
    within(engine, waiting).await?;
    engine.progress(&prepared.config.name, |progress| progress.failed += rows.len());
    Ok(())
}

struct PendingClaimBuilder<'a> {
    engine: &'a Engine,
    prepared: &'a PreparedPending,
    poll: &'a PendingPoll,
    /// The receiver is out: one row tries it.
    probes: bool,
    unmarkable: Option<Key>,
    token: String,
}

impl PendingClaimBuilder<'_> {
    async fn rows(&mut self, cursor: &LockedCursor, most: usize) -> Result<Vec<PendingJob>, Error> {
        let prepared = self.prepared;
        let first = prepared.marks_first();
        if self.poll.expired {
            for key in cursor.expire_claims().await? {
                let key = Key(key).message_id();
                tracing::error!(
                    cursor = prepared.config.name,
                    key,
                    "outcome unknown: a claim ended without a record, because a replica ended or PostgreSQL did not answer"
                );
            }
        } else if !first && fastrand::u32(..1_000) == 0 {
            cursor.prune_claims().await?;
        }
        self.lapse(cursor).await?;
        let redriven = if cursor.redrive { cursor.letters_to_send().await? } else { Vec::new() };
        let redriven: Redriven = redriven.into_iter().collect();
        let (due, fields) = (&prepared.due, prepared.sink.fields());
        let mut jobs = Vec::new();
        // A claim that has just been found out to be unknown ends its redrive, before its row is claimed at another due time.
        if self.poll.redrive || self.poll.expired && cursor.redrive {
            jobs.extend(self.redrive(cursor, most, &redriven).await?);
        }
        if self.poll.waits && jobs.len() < most {
            let sql = due.retake_sql(fields, most - jobs.len());
            jobs.extend(self.again(cursor, &sql, &redriven).await?);
        }
        if jobs.len() < most {
            let taking = taking(prepared.config.guarantee);
            for row in self.first(cursor, fields, taking, most - jobs.len()).await? {
                if row.try_get::<_, Option<i32>>(2)?.is_none() {
                    self.unmarkable = Some(Key(row.try_get(0)?));
                    continue;
                }
                jobs.push(self.job(&row, 3, &redriven)?);
            }
        }
        Ok(jobs)
    }

    /// Takes rows of dead letters that are to be sent again, and ends the redrives that nothing sends.
    async fn redrive(&self, cursor: &LockedCursor, most: usize, redriven: &Redriven) -> Result<Vec<PendingJob>, Error> {
        let (prepared, due) = (self.prepared, &self.prepared.due);
        let name = &prepared.config.name;
        let sql = due.redrive_sql(prepared.sink.fields(), taking(prepared.config.guarantee), most);
        let jobs = self.again(cursor, &sql, redriven).await?;
        let relay: [&(dyn ToSql + Sync); 1] = [name];
        if prepared.marks_first() {
            cursor.claim(Taking { sql: &Due::reclaim_sql(), parameters: &relay }).await?;
        }
        cursor.claim(Taking { sql: &due.stray_sql(), parameters: &relay }).await?;
        for letter in cursor.claim(Taking { sql: &Due::unknown_sql(), parameters: &relay }).await? {
            let key: String = letter.try_get(0)?;
            tracing::error!(cursor = name, key, "redrive of a dead letter ended; its outcome is unknown");
        }
        for letter in cursor.claim(Taking { sql: &Due::gone_sql(), parameters: &relay }).await? {
            let key: String = letter.try_get(0)?;
            tracing::warn!(cursor = name, key, "dead letter not sent again: its row is gone or not due");
        }
        Ok(jobs)
    }

    /// Claims at most so many rows, the first that are due; with lanes, one of each.
    async fn first(
        &self,
        cursor: &LockedCursor,
        fields: &[Field],
        taking: source::pending::Taking,
        most: usize,
    ) -> Result<Vec<Row>, Error> {
        let due = &self.prepared.due;
        if due.config.lanes.is_none() {
            return self.take(cursor, &due.claim_sql(fields, taking, most), None).await;
        }
        let reach = Reach { jobs: self.poll.rows, probes: self.probes };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.take(cursor, &due.lane_claim_sql(fields, taking, reach), Some(most)).await
    }

    /// Lanes of claims that have run out are free: the rows themselves say what is first.
    async fn lapse(&self, cursor: &LockedCursor) -> Result<(), Error> {
        match self.prepared.due.config.lanes {
            Some(_) => cursor.lapse_claims().await,
            None => Ok(()),
        }
    }

    /// `most` where the statement has it as its last parameter.
    async fn take(&self, cursor: &LockedCursor, sql: &str, most: Option<i64>) -> Result<Vec<Row>, Error> {
        let lease = self.prepared.config.turn.lock_kill().as_secs_f64();
        let (name, replica) = (&self.prepared.config.name, &self.engine.replica);
        let mut parameters: Vec<&(dyn ToSql + Sync)> =
            vec![name, &self.poll.once, &self.poll.now, &self.token, replica, &lease];
        parameters.extend(most.iter().map(|most| most as &(dyn ToSql + Sync)));
        cursor.claim(Taking { sql, parameters: &parameters }).await
    }

    /// Rows that were claimed before and are taken up again, unless they are gone or not due any more.
    async fn again(&self, cursor: &LockedCursor, sql: &str, redriven: &Redriven) -> Result<Vec<PendingJob>, Error> {
        let name = &self.prepared.config.name;
        let mut jobs = Vec::new();
        for row in self.take(cursor, sql, None).await? {
            if row.try_get::<_, bool>(3)? {
                jobs.push(self.job(&row, 5, redriven)?);
                continue;
            }
            let key: Vec<String> = row.try_get(0)?;
            let parameters: [&(dyn ToSql + Sync); 2] = [name, &key];
            let sql = self.prepared.due.unmark_sql();
            let unmark = Taking { sql: &sql, parameters: &parameters };
            let claim = ClaimedRow { relay: name, key: &key, token: &self.token };
            let withdrawn = cursor.withdraw(row.try_get::<_, bool>(4)?.then_some(unmark), claim).await?;
            let key = Key(key).message_id();
            match withdrawn {
                Withdrawal::Done => {
                    tracing::info!(
                        cursor = name,
                        key,
                        "row is gone or no longer due as it was: not sent by this claim"
                    );
                }
                Withdrawal::Locked => {}
                Withdrawal::Refused(error) => {
                    let hint = "See what a trigger or a constraint of the table says to taking the mark back";
                    tracing::warn!(cursor = name, key, %error, hint, "row is not due as it was, and its mark stays; retrying in a minute");
                }
            }
        }
        Ok(jobs)
    }

    fn job(&self, row: &Row, first_field: usize, redriven: &Redriven) -> Result<PendingJob, Error> {
        let key = Key(row.try_get(0)?);
        let due_at: Timestamp = row.try_get(1)?;
        let fields = self.prepared.sink.fields().len();
        let values: Vec<Option<Raw<'_>>> =
            (0..fields).map(|n| row.try_get(first_field + n)).collect::<Result<_, tokio_postgres::Error>>()?;
        let length: Option<i64> = row.try_get(first_field + fields)?;
        let read: usize = values.iter().flatten().map(|Raw(bytes)| bytes.len()).sum();
        let length = length.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0).max(read);
        let mut message = Batch::of_due_rows(fields);
        message.push(due_at, &key.message_id(), values.iter().map(|value| value.map(|Raw(bytes)| bytes)));
        Ok(PendingJob {
            relay: self.prepared.config.name.clone(),
            token: self.token.clone(),
            attempts: row.try_get(2)?,
            late: self.poll.now.since(due_at) + self.poll.at.elapsed(),
            claimed: Instant::now(),
            replayed: redriven.contains(&(key.message_id(), due_at)),
            key,
            due_at,
            message,
            too_large: (length > self.prepared.due.largest()).then_some(length),
        })
    }
}
