//! One pass over everything that has a time: looking at it, or pruning it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;
use tokio_util::sync::CancellationToken;

use super::{Config, Kept, OldRecords, What, actions, letters, marks, messages, requests};
use crate::database::{Error, Session};
use crate::relay;

mod partitions;

/// So many rows are pruned by one statement.
const BATCH: i32 = 1_000;
/// The most milliseconds that PostgreSQL takes as a time-out.
const LONGEST: u128 = i32::MAX as u128;
/// The least rest between two statements.
const REST: Duration = Duration::from_millis(5);
/// Held by the session that prunes; an arbitrary number of our own.
const LOCK: i64 = 0x006f_7574_7072_756e;

/// The right to prune: nobody else does while this session lives.
#[derive(Debug)]
pub struct Pass<'a> {
    session: Session,
    config: &'a Config,
    relays: &'a [relay::Config],
    stop: CancellationToken,
    /// PostgreSQL ends the statement that is under way then.
    until: Option<Instant>,
    /// What it has done so far.
    done: Mutex<Vec<OldRecords>>,
}

impl<'a> Pass<'a> {
    /// Takes the right; none when somebody else has it.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(
        session: Session,
        config: &'a Config,
        relays: &'a [relay::Config],
        stop: CancellationToken,
    ) -> Result<Option<Self>, Error> {
        let row = session.query_one("SELECT pg_catalog.pg_try_advisory_lock($1)", &[&LOCK]).await?;
        let (until, done) = (None, Mutex::default());
        Ok(row.try_get::<_, bool>(0)?.then_some(Self { session, config, relays, stop, until, done }))
    }

    /// No statement of it lasts beyond `until`; none: each takes as long as it likes.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// What it has done so far, also when it failed or was dropped. Gives each entry once.
    #[must_use]
    pub fn done(&self) -> Vec<OldRecords> {
        std::mem::take(&mut *self.found())
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Vec<OldRecords>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to what it has done last.
    fn add(&self, rows: i64, kept: Option<Kept>) {
        if let Some(last) = self.found().last_mut() {
            last.rows += rows;
            last.kept.extend(kept);
        }
    }

    /// Before each statement that may take long.
    async fn limit(&self) -> Result<(), Error> {
        let Some(until) = self.until else { return Ok(()) };
        // Zero would be no limit.
        let left = until.saturating_duration_since(Instant::now()).as_millis().clamp(1, LONGEST);
        self.session.batch_execute(&format!("SET statement_timeout = {left}")).await?;
        Ok(())
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Rests as long as the last statement took; false when the pass is to end.
    async fn rest(&self, begun: Instant) -> bool {
        tokio::select! {
            () = tokio::time::sleep(begun.elapsed().max(REST)) => true,
            () = self.stop.cancelled() => false,
        }
    }

    /// Prunes batch by batch, until one is not full.
    async fn batches(
        &self,
        what: What,
        of: &str,
        prune: impl AsyncFn(&Session, i32) -> Result<i64, Error>,
    ) -> Result<(), Error> {
        self.found().push(OldRecords { what, of: of.to_owned(), rows: 0, kept: Vec::new() });
        loop {
            let begun = Instant::now();
            self.limit().await?;
            match prune(&self.session, BATCH).await {
                Ok(rows) => {
                    self.add(rows, None);
                    if rows < i64::from(BATCH) || !self.rest(begun).await {
                        return Ok(());
                    }
                }
                Err(error) => return self.failed(error).map(|kept| self.add(0, Some(kept))),
            }
        }
    }

    async fn marks(&self, relay: &relay::Config, seconds: f64) -> Result<(), Error> {
        let Some(pending) = marks::of(relay) else { return Ok(()) };
        self.found().push(OldRecords { what: What::SentMarks, of: relay.name.clone(), rows: 0, kept: Vec::new() });
        self.limit().await?;
        let mut marks = match marks::open(&self.session, relay, pending).await {
            Ok(Ok(marks)) => marks,
            Ok(Err(held_by)) => {
                self.add(0, Some(Kept::all(held_by)));
                return Ok(());
            }
            Err(error) => return self.failed(error).map(|kept| self.add(0, Some(kept))),
        };
        loop {
            let begun = Instant::now();
            self.limit().await?;
            match marks.page(&self.session, seconds, true).await {
                Ok(page) => {
                    self.add(page.gone, None);
                    if page.last || !self.rest(begun).await {
                        return Ok(());
                    }
                }
                Err(error) => return self.failed(error).map(|kept| self.add(0, Some(kept))),
            }
        }
    }

    /// What one kind met does not keep the others from their turn, unless the session is gone.
    fn failed(&self, error: Error) -> Result<Kept, Error> {
        if self.session.is_closed() {
            return Err(error);
        }
        let at_limit = self.until.is_some() && error.state() == Some(&SqlState::QUERY_CANCELED);
        let held_by = if at_limit {
            "a statement did not end within the limit; the next prune goes on there".to_owned()
        } else {
            format!("it failed: {error}")
        };
        Ok(Kept { rows: None, held_by, failed: true })
    }
}

/// What is old enough, how much of it may go, and what keeps the rest. Changes nothing.
///
/// # Errors
/// The database's.
pub async fn look(session: &Session, config: &Config, relays: &[relay::Config]) -> Result<Vec<OldRecords>, Error> {
    let mut found = Vec::new();
    if let Some(time) = config.completed_requests {
        found.push(requests::look(session, time.as_secs_f64()).await?);
    }
    if let Some(time) = config.sent_marks {
        let mut known = Vec::new();
        for relay in relays {
            if let Some(pending) = marks::of(relay) {
                known.push(relay.name.as_str());
                found.push(marks::look(session, relay, pending, time.as_secs_f64()).await?);
            }
        }
        found.extend(marks::strangers(session, &known, time.as_secs_f64()).await?);
    }
    if let Some(time) = config.dead_letters {
        found.push(letters::look(session, time.as_secs_f64()).await?);
    }
    if let Some(time) = config.actions {
        found.push(actions::look(session, time.as_secs_f64()).await?);
    }
    if let Some(time) = config.messages {
        found.extend(messages::look(session, relays, time.as_secs_f64()).await?);
    }
    Ok(found)
}

/// Prunes what may go; ends after its batch when the pass is to end. What became of it, [`Pass::done`] gives.
///
/// # Errors
/// When the session has ended.
pub async fn prune(pass: &Pass<'_>) -> Result<(), Error> {
    let due = |time: Option<Duration>| time.filter(|_| !pass.stop.is_cancelled());
    if let Some(time) = due(pass.config.completed_requests) {
        let prune = async |session: &Session, most| requests::prune(session, time.as_secs_f64(), most).await;
        pass.batches(What::Requests, "outbox.request", prune).await?;
    }
    if let Some(time) = pass.config.sent_marks {
        for relay in pass.relays.iter().take_while(|_| !pass.stop.is_cancelled()) {
            pass.marks(relay, time.as_secs_f64()).await?;
        }
    }
    if let Some(time) = due(pass.config.dead_letters) {
        let prune = async |session: &Session, most| letters::prune(session, time.as_secs_f64(), most).await;
        pass.batches(What::DeadLetters, "outbox.dead_letter", prune).await?;
    }
    if let Some(time) = due(pass.config.actions) {
        let prune = async |session: &Session, most| actions::prune(session, time.as_secs_f64(), most).await;
        pass.batches(What::Actions, "outbox.action", prune).await?;
    }
    if !pass.stop.is_cancelled() {
        pass.messages().await?;
    }
    Ok(())
}

/// Leaves a row in `outbox.operation`: who pruned what.
///
/// # Errors
/// The database's.
pub async fn note(session: &Session, by: &str, found: &[OldRecords]) -> Result<(), Error> {
    let pruned: Vec<_> = found
        .iter()
        .filter(|found| found.rows > 0)
        .map(|found| serde_json::json!({ "what": found.what.as_str(), "of": found.of, "rows": found.rows }))
        .collect();
    if pruned.is_empty() {
        return Ok(());
    }
    let detail = serde_json::json!({ "pruned": pruned }).to_string();
    session.execute(include_str!("sql/pass_note.sql"), &[&by, &detail]).await?;
    Ok(())
}

/// A session that may take its time: counting a large table is no turn.
///
/// # Errors
/// The database's.
pub async fn patient(session: &Session) -> Result<(), Error> {
    let sql = include_str!("sql/pass_patient.sql");
    session.query(sql, &[]).await?;
    Ok(())
}
