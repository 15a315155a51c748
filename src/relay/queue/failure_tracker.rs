//! Failures of a relay that sends its jobs individually: the database or the receiver fails, and recovers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor;
use crate::database::{Error, Session, sqlstate};
use crate::pace::Backoff;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit::OPENS_AFTER;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{Disposition, ForCircuit, ForRelay};
use crate::relay::engine::report;
use crate::sink::{Class, Failure, named};

/// A row of failures is reported no more often than this.
const TELL: Duration = Duration::from_secs(1);

/// What has gone wrong lately, and until when nothing is begun because of it.
#[derive(Debug)]
pub(in crate::relay) struct FailureTracker {
    engine: Arc<Engine>,
    cursor: String,
    /// After failures of the database, or of all rows by an outage.
    backoff: Backoff,
    /// Sends in a row that failed by an outage.
    outages: u32,
    /// Attempts in a row that failed, for whatever reason.
    unsuccessful: u32,
    /// When such a row of failures was last reported.
    told: Option<Instant>,
    /// Nothing is begun before.
    pub(in crate::relay) not_before: Instant,
    /// `cursor_status` holds an error of this replica, which the next success must clear.
    pub(in crate::relay) reported: bool,
    /// It holds one, whichever replica wrote it, as last read.
    failing: bool,
    /// The reason that was logged last for outcomes that cannot be recorded.
    unrecorded: Option<String>,
    /// When an outcome that the server refuses to record was last reported.
    refused: Option<Instant>,
}

/// What to do after an error of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct NextAttempt {
    /// How long to wait.
    pub(in crate::relay) pause: Duration,
    /// The relay's checks must be made again: its table may be another.
    pub(in crate::relay) recheck: bool,
}

impl FailureTracker {
    pub(in crate::relay) fn new(engine: Arc<Engine>, cursor: &str) -> Self {
        let (cursor, backoff) = (cursor.to_owned(), Backoff::new());
        Self {
            engine,
            cursor,
            backoff,
            outages: 0,
            unsuccessful: 0,
            told: None,
            not_before: Instant::now(),
            reported: false,
            failing: false,
            unrecorded: None,
            refused: None,
        }
    }

    /// Whether the receiver is out, as far as is known.
    pub(in crate::relay) fn is_out(&self) -> bool {
        self.outages >= OPENS_AFTER
    }

    /// Carries out what a failure means for the relay, which was ready under this fingerprint; `key` is the message's.
    pub(in crate::relay) async fn follow(
        &mut self,
        disposition: Disposition,
        failure: &Failure,
        fingerprint: &str,
        key: &str,
    ) {
        match (disposition.relay, disposition.circuit) {
            (ForRelay::Unaffected, _) => {}
            (ForRelay::Recovers, _) => self.recovered().await,
            (ForRelay::Continues, ForCircuit::Closes) => self.answered(failure).await,
            (ForRelay::Continues, ForCircuit::Unchanged | ForCircuit::Outage) => self.unsuccessful(failure).await,
            (ForRelay::BacksOff, _) => self.out(failure).await,
            (ForRelay::Rechecks, _) => {
                self.unsuccessful(failure).await;
                self.report(failure).await;
            }
            (ForRelay::Halts, _) => self.halt(fingerprint, failure, Some(key)).await,
        }
    }

    /// The database said no to a relay that was ready under this fingerprint, if it was.
    pub(in crate::relay) async fn failed(&mut self, error: &Error, fingerprint: Option<&str>) -> NextAttempt {
        let meaning = sqlstate::meaning(error);
        let (code, hint) = (sqlstate::word(error), named(meaning.hint, &self.cursor));
        let class = if meaning.cure == sqlstate::Cure::Halt { Class::Fatal } else { Class::Retry };
        let failure = Failure::of(class, &code, error.to_string(), hint);
        let pause = self.backoff.failed(fastrand::f64());
        tracing::warn!(cursor = self.cursor, code, %error, hint = failure.hint, ?pause, "cannot look for due work");
        match (fingerprint, class) {
            (Some(fingerprint), Class::Fatal) => self.halt(fingerprint, &failure, None).await,
            // A connection that breaks once is no news for the status.
            _ if self.backoff.failures() > 1 => {
                self.reported = true;
                let error = report::error(&failure, None);
                report::write(&self.engine, &self.cursor, &error, None, None).await;
            }
            _ => {}
        }
        let data = error.state().is_some_and(|state| state.code().starts_with("22"));
        NextAttempt { pause, recheck: data || meaning.cure == sqlstate::Cure::Recheck }
    }

    /// Logs why outcomes cannot be recorded yet, each reason once.
    pub(in crate::relay) fn cannot_record(&mut self, error: &Error) {
        let reason = Some(error.to_string());
        if self.unrecorded != reason {
            tracing::warn!(cursor = self.cursor, %error, "cannot record outcomes yet; retrying");
            self.unrecorded = reason;
        }
    }

    /// The server refuses to record what became of a job: what was sent may be sent again in the end.
    pub(in crate::relay) async fn record_refused(&mut self, id: &str, error: &Error) {
        if self.refused.is_some_and(|refused| refused.elapsed() < TELL) {
            return;
        }
        let failure = Failure::of(
            Class::Retry,
            &sqlstate::word(error),
            format!("the outcome of {id} cannot be recorded: {error}"),
            "See what a trigger, a constraint or a missing privilege refuses there; recording is retried.",
        );
        self.report(&failure).await;
        self.refused = Some(Instant::now());
    }

    /// The relay halts until an operator resumes it.
    pub(in crate::relay) async fn halt(&mut self, fingerprint: &str, failure: &Failure, key: Option<&str>) {
        tracing::error!(
            cursor = self.cursor,
            key,
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            "relay halted"
        );
        self.reported = true;
        let error = report::error(failure, key);
        report::write(&self.engine, &self.cursor, &error, Some(fingerprint), Some(false)).await;
    }

    /// Says what is wrong; nothing stands still because of it.
    async fn report(&mut self, failure: &Failure) {
        self.reported = true;
        report::write(&self.engine, &self.cursor, &report::error(failure, None), None, None).await;
    }

    /// An attempt failed, and nothing waits because of it. Once so many in a row have, that is reported: nothing gets done,
    /// and claims alone look like work.
    async fn unsuccessful(&mut self, failure: &Failure) {
        self.unsuccessful = self.unsuccessful.saturating_add(1);
        if self.unsuccessful < OPENS_AFTER || self.told.is_some_and(|told| told.elapsed() < TELL) {
            return;
        }
        self.report(failure).await;
        self.told = Some(Instant::now());
    }

    /// The receiver has answered, and not accepted: it is not out, and nothing gets done all the same.
    async fn answered(&mut self, failure: &Failure) {
        if self.unsuccessful.saturating_add(1) < OPENS_AFTER {
            // No success: what another replica has reported stays.
            let unsuccessful = self.unsuccessful;
            self.failing = false;
            self.recovered().await;
            self.unsuccessful = unsuccessful;
        }
        self.outages = 0;
        self.backoff = Backoff::new();
        self.unsuccessful(failure).await;
    }

    /// The receiver is out, or wants fewer requests: not this row's fault. Pauses grow while nothing gets through.
    async fn out(&mut self, failure: &Failure) {
        self.outages = self.outages.saturating_add(1);
        self.unsuccessful = self.unsuccessful.saturating_add(1);
        if !self.is_out() && failure.retry_after.is_none() {
            return;
        }
        let pause = self.backoff.failed(fastrand::f64()).max(failure.retry_after.unwrap_or_default());
        self.not_before = Instant::now() + pause;
        self.reported = true;
        let error = report::error(failure, None);
        report::write(&self.engine, &self.cursor, &error, None, None).await;
    }

    /// Our own code panicked while it sent something: without pauses it would do so again and again.
    pub(in crate::relay) async fn panicked(&mut self) {
        let hint = "Please report it with the log of this moment; what was claimed is retried when its claim expires.";
        self.out(&Failure::of(Class::Retry, "panicked", "sending panicked", hint).in_doubt()).await;
    }

    /// What `cursor_status` says of the relay, whichever replica wrote it: this one's next success clears it.
    pub(in crate::relay) const fn is_failing(&mut self, failing: bool) {
        self.failing = failing;
    }

    /// Nothing waits, and nothing is on its way in any replica: no success would ever clear a failure that was reported. Whether
    /// the receiver is out is remembered.
    pub(in crate::relay) async fn nothing_waits(&mut self, session: &Session, linger: Duration) -> Result<(), Error> {
        if cursor::rest(session, &self.cursor, linger).await? {
            self.reported = false;
        }
        Ok(())
    }

    /// The receiver has accepted something, or the database is there again.
    pub(in crate::relay) async fn recovered(&mut self) {
        (self.outages, self.unsuccessful, self.told) = (0, 0, None);
        self.backoff = Backoff::new();
        let (reported, failing) = (std::mem::take(&mut self.reported), std::mem::take(&mut self.failing));
        if !reported && !failing {
            return;
        }
        let cleared = async { cursor::clear(self.engine.probe.session().await?.as_ref(), &self.cursor, None).await };
        if let Err(error) = within(&self.engine, cleared).await {
            tracing::warn!(cursor = self.cursor, %error, "cannot record that the relay is well again");
            self.reported = true;
        }
    }
}
