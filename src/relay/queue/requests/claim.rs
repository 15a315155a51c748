//! Claiming requests: one short transaction under the lock of the relay's cursor, in which what is sent is pinned.

use std::time::{Duration, Instant};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::ready::{Ready, key_memory};
use super::task::{Plan, Task};
use crate::batch::Batch;
use crate::cursor::claims::Taking;
use crate::cursor::{ErrorReport, LockedCursor, ledger};
use crate::database::Error;
use crate::database::codec::Raw;
use crate::position::Timestamp;
use crate::relay::OnUnknown;
use crate::relay::engine::deadline::within;
use crate::relay::engine::{Engine, Slot};
use crate::sink::Class;

/// What came of it.
#[derive(Debug)]
pub(super) enum Claim {
    /// Another replica is claiming.
    Busy,
    /// The relay is paused, halted, or no longer this one's.
    NotNow,
    /// The rate allows none yet.
    Early(Duration),
    /// These are this replica's to send, at once.
    Requests {
        /// The requests.
        tasks: Vec<Task>,
        /// How many more are unknown now, for a person to decide.
        given_up: usize,
        /// How many somebody had when he ended, with those that were given up.
        interrupted: usize,
    },
}

/// Columns of a taken row in front of the sink's fields.
const FIXED: usize = 8;

/// A row that the claim has locked.
struct Taken {
    id: String,
    due_at: Timestamp,
    attempts: i32,
    pinned: Option<Vec<u8>>,
    interrupted: bool,
    /// The receiver may know its key.
    known: bool,
    /// The receiver may have forgotten its key.
    forgotten: bool,
    message: Batch,
}

/// Claims at most `most` requests.
pub(super) async fn claim(engine: &Engine, ready: &Ready, interrupted: bool, most: usize) -> Result<Claim, Error> {
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
    let claiming = Claiming { engine, ready, token: format!("{:032x}", fastrand::u128(..)) };
    let (tasks, [given_up, interrupted]) = within(engine, claiming.tasks(&cursor, interrupted, most)).await?;
    if tasks.is_empty() && given_up == 0 {
        within(engine, cursor.release()).await?;
    } else {
        // What is sent must be on the disk before: after a crash of the database it could not be told from what was not.
        within(engine, cursor.claimed(&engine.replica, true)).await?;
    }
    drop(permits);
    Ok(Claim::Requests { tasks, given_up, interrupted })
}

struct Claiming<'a> {
    engine: &'a Engine,
    ready: &'a Ready,
    token: String,
}

impl Claiming<'_> {
    async fn tasks(
        &self,
        cursor: &LockedCursor,
        interrupted: bool,
        most: usize,
    ) -> Result<(Vec<Task>, [usize; 2]), Error> {
        let mut taken = Vec::new();
        if interrupted {
            taken = self.take(cursor, &self.ready.interrupted_sql, most).await?;
        }
        for sql in &self.ready.take_sql {
            if taken.len() < most {
                taken.extend(self.take(cursor, sql, most - taken.len()).await?);
            }
        }
        let counted = taken.iter().filter(|taken| taken.interrupted).count();
        let (given_up, taken): (Vec<Taken>, Vec<Taken>) = taken.into_iter().partition(|taken| self.is_over(taken));
        self.give_up(cursor, &given_up).await?;
        let tasks: Vec<(Task, bool)> = taken.into_iter().map(|taken| self.task(taken)).collect();
        let claimed: Vec<ledger::Claimed<'_>> = tasks
            .iter()
            .map(|(task, interrupted)| ledger::Claimed {
                id: &task.id,
                body: task.body().filter(|_| !task.pinned_before),
                interrupted: *interrupted,
            })
            .collect();
        if !claimed.is_empty() {
            let lease = self.ready.config.turn.lock_kill();
            cursor.claim_requests(&self.token, &self.engine.replica, lease, &claimed).await?;
        }
        Ok((tasks.into_iter().map(|(task, _)| task).collect(), [given_up.len(), counted]))
    }

    async fn take(&self, cursor: &LockedCursor, sql: &str, most: usize) -> Result<Vec<Taken>, Error> {
        let once = self.engine.once();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        // What is claimed now may still be sent a lease later.
        let memory = key_memory(&self.ready.config.sink)
            .map(|memory| memory.saturating_sub(self.ready.config.turn.lock_kill()).as_secs_f64());
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.ready.config.name, &once, &most, &memory];
        let rows = cursor.claim(Taking { sql, parameters: &parameters }).await?;
        rows.iter().map(|row| self.taken(row)).collect()
    }

    fn taken(&self, row: &Row) -> Result<Taken, Error> {
        let id: String = row.try_get(0)?;
        let fields = self.ready.sink.fields().len();
        let values: Vec<Option<Raw<'_>>> =
            (0..fields).map(|n| row.try_get(FIXED + n)).collect::<Result<_, tokio_postgres::Error>>()?;
        let mut message = Batch::new(fields);
        message.push(row.try_get(7)?, &id, values.iter().map(|value| value.map(|Raw(bytes)| bytes)));
        Ok(Taken {
            due_at: row.try_get(1)?,
            attempts: row.try_get(2)?,
            pinned: row.try_get(3)?,
            interrupted: row.try_get(4)?,
            known: row.try_get(5)?,
            forgotten: row.try_get(6)?,
            id,
            message,
        })
    }

    /// Whether nothing is tried with the request any more: a person must decide.
    fn is_over(&self, taken: &Taken) -> bool {
        taken.forgotten || taken.interrupted && self.ready.config.on_unknown == OnUnknown::DeadLetter
    }

    async fn give_up(&self, cursor: &LockedCursor, over: &[Taken]) -> Result<(), Error> {
        for (interrupted, forgotten) in [(true, false), (true, true), (false, true)] {
            let of = over.iter().filter(|taken| (taken.interrupted, taken.forgotten) == (interrupted, forgotten));
            let ids: Vec<&str> = of.map(|taken| taken.id.as_str()).collect();
            if ids.is_empty() {
                continue;
            }
            let (code, message) = if forgotten {
                ("key_forgotten", "it may have been sent, and the receiver may have forgotten its idempotency key")
            } else {
                ("interrupted", "a replica ended or was cut off while it had the request: sent or not")
            };
            let hint = "See at the receiver whether it has arrived; `outbox-relay request redrive ID` sends it again.";
            let error = ErrorReport { class: Class::Retry.as_str(), code, message, hint, message_id: None };
            cursor.give_up_requests(&ids, interrupted, &error).await?;
            for id in ids {
                tracing::error!(cursor = self.ready.config.name, id, code, hint, "request: outcome unknown");
            }
        }
        Ok(())
    }

    /// What is to be done, and whether somebody had been about to do it.
    fn task(&self, taken: Taken) -> (Task, bool) {
        let interrupted = taken.interrupted;
        if interrupted {
            let (cursor, id, asked) =
                (&self.ready.config.name, &taken.id, self.ready.config.on_unknown == OnUnknown::Ask);
            tracing::warn!(
                cursor,
                id,
                asked,
                "a replica ended or was cut off while it had the request: it is taken up again"
            );
        }
        let pinned_before = taken.pinned.is_some();
        let plan = match taken.pinned.map_or_else(|| self.ready.sink.pin(&taken.message.message(0)), Ok) {
            Err(failure) => Plan::Refused(failure),
            Ok(body) if (taken.known || interrupted) && self.ready.config.on_unknown == OnUnknown::Ask => {
                Plan::Ask(body)
            }
            Ok(body) => Plan::Send(body),
        };
        let task = Task {
            id: taken.id,
            token: self.token.clone(),
            attempts: taken.attempts,
            due_at: taken.due_at,
            claimed: Instant::now(),
            again: taken.known || interrupted,
            pinned_before,
            plan,
            message: taken.message,
        };
        (task, interrupted)
    }
}
