//! What a relay does about a turn that ended with an error, and what an operator can do about it.

use crate::database::Error;
use crate::database::sqlstate::{self, Cure};
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::report;
use crate::relay::stream::worker::{Next, Worker};
use crate::sink::{Class, Failure, Subject, named};
use crate::source::fetch::FetchError;

/// What to do about rows that are not read in time.
const LATE: &str = "The relay retries. If it persists while PostgreSQL is available, it takes too long to read a row, the first after the \
                    position that `outbox-relay cursor show NAME` prints: raise turn.deadline, publish fewer columns, or store what \
                    a cast or a function makes of them.";

impl Worker<'_> {
    /// What to do about a table that is not what it was.
    fn adopt(&self, first: &str) -> String {
        let hint = format!("{first}; or accept what is there now: `outbox-relay cursor adopt NAME`.");
        named(&hint, &self.ready.config.name)
    }

    /// The database said no or fell silent, or the table is not what it was.
    pub(in crate::relay) async fn failed(&mut self, error: &TurnError) -> Next {
        if let TurnError::Fetch(error) = error {
            self.learned.reading_failed(error.is_too_slow());
        }
        let database = match error {
            TurnError::Fetch(FetchError::FamilyChanged) => {
                tracing::debug!(cursor = self.ready.config.name, %error, "the catalog is read again");
                return Next::Catalogue;
            }
            TurnError::Fetch(FetchError::Replaced { .. }) => {
                let hint = self.adopt("Rename it back, then `outbox-relay cursor resume NAME`");
                return self.halted("relation_replaced", error, hint).await;
            }
            TurnError::Fetch(FetchError::AttachedBehind { .. }) => {
                let hint = "Move the position back to before the first of those rows that is missing (`outbox-relay cursor seek \
                            NAME --at INSTANT`), or publish them by hand, or give them up; then accept the partition: \
                            `outbox-relay cursor adopt NAME`. `outbox-relay cursor resume NAME` is enough only where no row of \
                            the partition is left at or below the position.";
                return self.halted("partition_attached", error, named(hint, &self.ready.config.name)).await;
            }
            TurnError::Fetch(FetchError::Detached { partition, .. }) => {
                let hint = format!(
                    "The next pass of [retention] messages puts it back; at once, as the owner: \
                     SELECT outbox.attach_messages('{partition}')."
                );
                return self.waits_for_partition(error, hint).await;
            }
            TurnError::Fetch(FetchError::Away { fix, .. }) => {
                let hint = self.adopt(fix);
                return self.waits_for_partition(error, hint).await;
            }
            // Found by reading ahead: only the turn that has the lock decides about the row.
            TurnError::Fetch(FetchError::Unreadable(_)) => return Next::Look,
            TurnError::LockLost { .. } | TurnError::Fetch(FetchError::Late(_)) => None,
            TurnError::NotAdvanced { source, .. }
            | TurnError::NotSettled { source, .. }
            | TurnError::Fetch(FetchError::Database(source))
            | TurnError::Database(source) => Some(source),
        };
        if matches!(database, Some(Error::TwoServers { .. })) {
            // Which of them is the one that has gone cannot be told: all are opened again.
            self.engine.watcher.forget().await;
            self.engine.probe.forget().await;
        }
        let cure = database.map_or(Cure::Again, |database| sqlstate::meaning(database).cure);
        let (code, hint) = code_and_fix(error, database);
        let hint = named(hint, &self.ready.config.name);
        if cure == Cure::Halt {
            return self.halted(&code, error, hint).await;
        }
        let pause = self.backoff.failed(fastrand::f64());
        tracing::warn!(cursor = self.ready.config.name, code, %error, hint, ?pause, "turn failed");
        // A connection that breaks once is no news for the status.
        if self.backoff.failures() > 1 {
            let failure = Failure::of(Class::Retry, &code, error.to_string(), hint);
            report::retry(self.engine, self.ready, &failure, None, None).await;
        }
        if cure == Cure::Recheck { Next::Recheck(pause) } else { Next::After(pause) }
    }

    async fn waits_for_partition(&mut self, error: &TurnError, hint: String) -> Next {
        tracing::warn!(cursor = self.ready.config.name, %error, hint, "waiting for a partition");
        let failure =
            Failure::of(Class::Retry, "partition_detached", error.to_string(), hint).about(Subject::Elsewhere);
        let pause = self.backoff.failed(fastrand::f64());
        // Nothing was sent: it says nothing of the sink's circuit.
        report::retry(self.engine, self.ready, &failure, None, None).await;
        Next::After(pause)
    }

    async fn halted(&self, code: &str, error: &TurnError, hint: String) -> Next {
        let failure = Failure::of(Class::Fatal, code, error.to_string(), hint);
        report::halt(self.engine, self.ready, &failure, None).await;
        Next::Halted
    }
}

/// Code and fix of an error of a turn; `database` is the database's part of it.
fn code_and_fix(error: &TurnError, database: Option<&Error>) -> (String, &'static str) {
    match (error, database) {
        (_, Some(database)) => (sqlstate::word(database), database.fix()),
        (TurnError::Fetch(FetchError::Late(_)), None) => ("read_timeout".to_owned(), LATE),
        (_, None) => ("lock_lost".to_owned(), sqlstate::SILENT.hint),
    }
}
