//! What a relay does about a turn that did not end well.

use std::time::Duration;

use crate::cursor::unknown;
use crate::pace::Backoff;
use crate::position::Timestamp;
use crate::relay::OnPoison;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForCircuit, ForRelay, at_stop};
use crate::relay::stream::redrive::is_refused;
use crate::relay::stream::report;
use crate::relay::stream::worker::{Next, Worker};
use crate::sink::{Class, Failure};
use crate::source::watcher::Sighting;

mod error;

impl Worker<'_> {
    /// The database's clock shows less than it did at the last advance, which the looks at the table log.
    pub(in crate::relay) fn regressed(&self, observed_at: Timestamp, clock: Timestamp, sighting: &Sighting) -> Next {
        // Another replica may have advanced since this scan: only a clock that is behind even now has stepped back.
        if sighting.latest_clock() >= observed_at {
            return Next::Look;
        }
        Next::After(observed_at.since(clock).clamp(Duration::from_millis(100), Duration::from_secs(1)))
    }

    /// Another number of partitions: asks the cluster once more, because this replica may not have seen the last change,
    /// and does then as configured.
    pub(in crate::relay) async fn repartitioned(&mut self, known: i32, found: i32) -> Next {
        if let Err(failure) = self.ready.sink.look_again(self.engine.call_deadline).await {
            if at_stop(&failure).relay == ForRelay::Halts {
                report::halt(self.engine, self.ready, &failure, None).await;
            }
            return self.stalled(&failure, None).await;
        }
        let now = self.ready.sink.partitions().unwrap_or(known);
        if now != found || now == known {
            return Next::Look;
        }
        if self.ready.config.goes_on_with_new_partitions() {
            tracing::warn!(
                cursor = self.ready.config.name,
                known,
                found,
                "the topic's partitions have changed: going on"
            );
            self.learned.accepted_partitions = Some(found);
            return Next::Look;
        }
        let partitions = if found == 1 { "partition" } else { "partitions" };
        let message = format!(
            "topic {} has {found} {partitions}, the cursor's keys are spread over {known}: rows of one key would go on in \
             another partition",
            self.ready.config.sink.target()
        );
        let hint = format!(
            "Let consumers catch up with what was published; then `outbox-relay cursor adopt {}`, or set \
             on_partition_change = \"continue\".",
            self.ready.config.name
        );
        let failure = Failure::of(Class::Fatal, "partition_count_changed", message, hint);
        report::halt(self.engine, self.ready, &failure, None).await;
        Next::Halted
    }

    pub(in crate::relay) async fn redriven(
        &mut self,
        rows: usize,
        failure: Option<Failure>,
        message_id: Option<&str>,
    ) -> Next {
        if rows > 0 || failure.is_none() {
            self.learned.resent();
        }
        if rows > 0 {
            tracing::info!(cursor = self.ready.config.name, rows, "dead letters were sent again and accepted");
            self.accepted().await;
        }
        let rested = self.ready.sink.min_interval().map_or(Next::Look, Next::After);
        match failure {
            None => {
                self.recovered().await;
                rested
            }
            Some(failure) if is_refused(&failure) => {
                tracing::error!(
                    cursor = self.ready.config.name,
                    code = failure.code,
                    error = failure.message,
                    hint = failure.hint,
                    "a dead letter was sent again and refused again"
                );
                rested
            }
            Some(failure) => {
                if at_stop(&failure).relay == ForRelay::Halts {
                    report::halt(self.engine, self.ready, &failure, None).await;
                } else if self.ready.config.lanes.are_used() || self.ready.config.on_poison == OnPoison::ParkKey {
                    return self.resend_waits(&failure, message_id).await;
                }
                self.stalled(&failure, message_id).await
            }
        }
    }

    /// A row that is to be sent again was not accepted, where no other key waits for it: rows that were not sent yet go on, and it says
    /// nothing of the receiver as a whole.
    async fn resend_waits(&mut self, failure: &Failure, message_id: Option<&str>) -> Next {
        self.learned.resend_failed(failure.retry_after.unwrap_or_default());
        tracing::warn!(
            cursor = self.ready.config.name,
            message_id,
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            attempt = self.learned.resends.failures(),
            "row not accepted again: it waits, others continue"
        );
        report::retry(self.engine, self.ready, failure, message_id, None).await;
        self.ready.sink.min_interval().map_or(Next::Look, Next::After)
    }

    /// The receiver has accepted messages, whatever comes behind them: it is no outage.
    pub(in crate::relay) async fn accepted(&mut self) {
        if self.ready.status.circuit_open() {
            self.recovered().await;
        }
        self.backoff = Backoff::new();
    }

    pub(in crate::relay) async fn stalled(&mut self, failure: &Failure, message_id: Option<&str>) -> Next {
        tracing::warn!(
            cursor = self.ready.config.name,
            message_id,
            class = failure.class.as_str(),
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            attempt = self.backoff.failures() + 1,
            "row not published"
        );
        self.back_off(failure, message_id).await
    }

    /// A row was passed that the receiver may have accepted, or not.
    pub(in crate::relay) async fn doubtful(
        &mut self,
        rows: usize,
        failure: &Failure,
        message_id: Option<String>,
    ) -> Next {
        if rows > 0 {
            self.accepted().await;
        }
        let Failure { code, message, hint, .. } = failure;
        let cursor = &self.ready.config.name;
        tracing::warn!(cursor, message_id, code, error = message, hint, "row passed: its outcome is not known");
        self.back_off(failure, message_id.as_deref()).await
    }

    /// What an ended replica had in flight was recorded.
    pub(in crate::relay) fn abandoned(&self, rows: u64, by: &str) -> Next {
        let (cursor, hint) = (&self.ready.config.name, unknown::HINT);
        tracing::warn!(cursor, rows, by, hint, "rows were in flight when their replica ended: recorded as unknown");
        Next::Look
    }

    /// Records that the cursor has recovered; the end of an outage is logged by the replica that records it.
    pub(in crate::relay) async fn recovered(&mut self) {
        let is_open = self.ready.status.circuit_open();
        if self.backoff.failures() == 0 && !self.ready.status.reported() && !is_open {
            return;
        }
        self.backoff = Backoff::new();
        self.ready.status.set_reported(false);
        let name = &self.ready.config.name;
        let cleared = within(self.engine, async {
            report::clear(self.engine.probe.session().await?.as_ref(), name, "the receiver accepts messages again")
                .await
        });
        match cleared.await {
            // The next look may be many turns away.
            Ok(()) => self.ready.status.set_circuit_open(false),
            Err(error) => {
                tracing::warn!(cursor = name, %error, "cannot record that the cursor is well again");
                self.ready.status.set_reported(true);
            }
        }
    }

    /// Waits for a failure to pass, or for an operator to fix it.
    pub(in crate::relay) async fn back_off(&mut self, failure: &Failure, message_id: Option<&str>) -> Next {
        let meaning = at_stop(failure);
        let outage = meaning.circuit == ForCircuit::Outage;
        match meaning.relay {
            ForRelay::BacksOff => {
                let pause = self.backoff.failed(fastrand::f64()).max(failure.retry_after.unwrap_or_default());
                let was_open = self.ready.status.circuit_open();
                let open = outage && (was_open || self.backoff.failures() >= circuit::OPENS_AFTER);
                if open && !was_open {
                    tracing::error!(
                        cursor = self.ready.config.name,
                        sink = self.ready.config.sink.kind(),
                        code = failure.code,
                        error = failure.message,
                        "circuit open: the receiver is out; it is tried with one message from time to time"
                    );
                }
                // An outage that opens nothing here says nothing against a circuit that another replica has just opened.
                let says = if outage { open.then_some(true) } else { Some(false) };
                report::retry(self.engine, self.ready, failure, message_id, says).await;
                Next::After(pause)
            }
            // Recorded already, usually by the turn itself while it held the lock.
            ForRelay::Unaffected | ForRelay::Recovers | ForRelay::Continues | ForRelay::Rechecks | ForRelay::Halts => {
                Next::Halted
            }
        }
    }
}
