//! Claiming rows: one short transaction under the lock of the relay's cursor.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::look::{Look, taking};
use super::ready::Ready;
use super::task::Task;
use crate::batch::Batch;
use crate::cursor::LockedCursor;
use crate::cursor::claims::{Claimed, Settlement, Taking};
use crate::database::Error;
use crate::database::codec::Raw;
use crate::position::Timestamp;
use crate::relay::Guarantee;
use crate::relay::engine::deadline::within;
use crate::relay::engine::report;
use crate::relay::engine::{Engine, Slot};
use crate::relay::queue::failure_tracker::pause;
use crate::sink::Failure;
use crate::source;
use crate::source::pending::{Due, Key};

/// What came of it.
#[derive(Debug)]
pub(super) enum Claim {
    /// Another replica is claiming.
    Busy,
    /// The relay is paused, halted, or no longer this one's.
    NotNow,
    /// The rate allows none yet.
    Early(Duration),
    /// These rows are this replica's to send, at once.
    Rows(Vec<Task>),
    /// The same; and this row cannot be marked first: setting its mark changes nothing.
    Unmarkable(Vec<Task>, Key),
}

/// Claims at most `most` rows.
pub(super) async fn claim(engine: &Engine, ready: &Ready, look: &Look, most: usize) -> Result<Claim, Error> {
    let Slot { lock, reader, permits } = engine.slot(false).await?;
    drop(reader);
    let locking = LockedCursor::lock(lock, &ready.config.name, &ready.seat.identity, None);
    let Some(cursor) = within(engine, locking).await? else { return Ok(Claim::Busy) };
    let refused = match (ready.sink.min_interval(), cursor.rested) {
        _ if cursor.foreign || cursor.paused || cursor.halted.as_deref() == Some(ready.seat.fingerprint.as_str()) => {
            Some(Claim::NotNow)
        }
        (Some(interval), Some(rested)) if rested < interval => Some(Claim::Early(interval - rested)),
        _ => None,
    };
    if let Some(refused) = refused {
        within(engine, cursor.release()).await?;
        return Ok(refused);
    }
    let mut claiming =
        Claiming { engine, ready, look, unmarkable: None, token: format!("{:032x}", fastrand::u128(..)) };
    let rows = within(engine, claiming.rows(&cursor, most)).await?;
    // With no row claimed, something may have been recorded all the same; only a claim in vain leaves no trace.
    if rows.is_empty() && !look.expired && !look.waits && !look.redrive {
        within(engine, cursor.release()).await?;
    } else {
        within(engine, cursor.claimed(&engine.replica, ready.config.guarantee == Guarantee::AtMostOnce)).await?;
    }
    drop(permits);
    Ok(match claiming.unmarkable {
        Some(key) => Claim::Unmarkable(rows, key),
        None => Claim::Rows(rows),
    })
}

/// Lets the first row wait that could be claimed: under at_most_once the server refuses to mark it, and it must not stand in
/// the way of others.
pub(super) async fn put_off(engine: &Engine, ready: &Ready, look: &Look, failure: &Failure) -> Result<(), Error> {
    let Slot { lock, reader, permits } = engine.slot(false).await?;
    let locking = LockedCursor::lock(lock, &ready.config.name, &ready.seat.identity, None);
    let Some(cursor) = within(engine, locking).await? else { return Ok(()) };
    let claiming = Claiming { engine, ready, look, unmarkable: None, token: format!("{:032x}", fastrand::u128(..)) };
    let sql = ready.due.claim_sql(&[], source::pending::Taking::MarkLater, 1);
    let rows = within(engine, claiming.take(&cursor, &sql)).await?;
    within(engine, cursor.claimed(&engine.replica, true)).await?;
    let waiting = async {
        let settlement = Settlement::begin(reader, true).await?;
        for row in &rows {
            let (key, attempts): (Vec<String>, i32) = (row.try_get(0)?, row.try_get(2)?);
            let claim = Claimed { relay: &ready.config.name, key: &key, token: &claiming.token };
            settlement.wait(claim, &report::error(failure, None), 1, pause(attempts, failure)).await?;
            let (cursor, key) = (&ready.config.name, Key(key).message_id());
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
    drop(permits);
    Ok(())
}

struct Claiming<'a> {
    engine: &'a Engine,
    ready: &'a Ready,
    look: &'a Look,
    unmarkable: Option<Key>,
    token: String,
}

impl Claiming<'_> {
    async fn rows(&mut self, cursor: &LockedCursor, most: usize) -> Result<Vec<Task>, Error> {
        let ready = self.ready;
        let first = ready.config.guarantee == Guarantee::AtMostOnce;
        if self.look.expired {
            for key in cursor.expire_claims().await? {
                let key = Key(key).message_id();
                tracing::error!(
                    cursor = ready.config.name,
                    key,
                    "outcome unknown: a replica ended while it had the row"
                );
            }
        } else if !first && fastrand::u32(..1_000) == 0 {
            cursor.prune_claims().await?;
        }
        let redriven = if cursor.redrive { cursor.letters_to_send().await? } else { Vec::new() };
        let redriven: HashSet<String> = redriven.into_iter().collect();
        let (due, fields) = (&ready.due, ready.sink.fields());
        let mut tasks = Vec::new();
        if self.look.redrive {
            let sql = due.redrive_sql(fields, taking(ready.config.guarantee), most);
            tasks.extend(self.again(cursor, &sql, &redriven).await?);
            let relay: [&(dyn ToSql + Sync); 1] = [&ready.config.name];
            if first {
                cursor.claim(Taking { sql: &Due::reclaim_sql(), parameters: &relay }).await?;
            }
            for letter in cursor.claim(Taking { sql: &Due::gone_sql(), parameters: &relay }).await? {
                let key: String = letter.try_get(0)?;
                tracing::warn!(
                    cursor = ready.config.name,
                    key,
                    "dead letter not sent again: its row is gone or not due"
                );
            }
        }
        if self.look.waits && tasks.len() < most {
            let sql = due.retake_sql(fields, most - tasks.len());
            tasks.extend(self.again(cursor, &sql, &redriven).await?);
        }
        if tasks.len() < most {
            let sql = due.claim_sql(fields, taking(ready.config.guarantee), most - tasks.len());
            for row in self.take(cursor, &sql).await? {
                if row.try_get::<_, Option<i32>>(2)?.is_none() {
                    self.unmarkable = Some(Key(row.try_get(0)?));
                    continue;
                }
                tasks.push(self.task(&row, 3, &redriven)?);
            }
        }
        Ok(tasks)
    }

    async fn take(&self, cursor: &LockedCursor, sql: &str) -> Result<Vec<Row>, Error> {
        let lease = self.ready.config.turn.lock_kill().as_secs_f64();
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&self.ready.config.name, &self.look.once, &self.look.now, &self.token, &self.engine.replica, &lease];
        cursor.claim(Taking { sql, parameters: &parameters }).await
    }

    /// Rows that were claimed before and are taken up again, unless they are gone or not due any more.
    async fn again(&self, cursor: &LockedCursor, sql: &str, redriven: &HashSet<String>) -> Result<Vec<Task>, Error> {
        let name = &self.ready.config.name;
        let mut tasks = Vec::new();
        for row in self.take(cursor, sql).await? {
            if row.try_get::<_, bool>(3)? {
                tasks.push(self.task(&row, 5, redriven)?);
                continue;
            }
            let key: Vec<String> = row.try_get(0)?;
            let parameters: [&(dyn ToSql + Sync); 2] = [name, &key];
            let sql = self.ready.due.unmark_sql();
            let unmark = Taking { sql: &sql, parameters: &parameters };
            let claim = Claimed { relay: name, key: &key, token: &self.token };
            if cursor.withdraw(row.try_get::<_, bool>(4)?.then_some(unmark), claim).await? {
                let key = Key(key).message_id();
                tracing::info!(cursor = name, key, "row is gone or no longer due as it was: not sent by this claim");
            }
        }
        Ok(tasks)
    }

    fn task(&self, row: &Row, first_field: usize, redriven: &HashSet<String>) -> Result<Task, Error> {
        let key = Key(row.try_get(0)?);
        let due_at: Timestamp = row.try_get(1)?;
        let fields = self.ready.sink.fields().len();
        let values: Vec<Option<Raw<'_>>> =
            (0..fields).map(|n| row.try_get(first_field + n)).collect::<Result<_, tokio_postgres::Error>>()?;
        let length: Option<i64> = row.try_get(first_field + fields)?;
        let read: usize = values.iter().flatten().map(|Raw(bytes)| bytes.len()).sum();
        let length = length.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0).max(read);
        let mut message = Batch::of_due_rows(fields);
        message.push(due_at, &key.message_id(), values.iter().map(|value| value.map(|Raw(bytes)| bytes)));
        Ok(Task {
            relay: self.ready.config.name.clone(),
            token: self.token.clone(),
            attempts: row.try_get(2)?,
            late: self.look.now.since(due_at),
            claimed: Instant::now(),
            replayed: redriven.contains(&key.message_id()),
            key,
            due_at,
            message,
            too_large: (length > self.ready.due.largest()).then_some(length),
        })
    }
}
