//! The watcher: looks at who is writing, and says how far a table is safe to read.
//!
//! One per replica, for all tables, on a connection of its own, in autocommit: inside a transaction PostgreSQL would
//! show the statistics of its first look indefinitely. What it remembers of its scans dies with the connection, because
//! virtual transaction ids are used again after a restart of the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use self::read::read;
use super::horizon::{Confirmed, History, Horizon, Margin, Scan};
use super::shape::Shape;
use super::{Rule, Stream};
use crate::database::{Error, Server, Session, Sessions};
use crate::position::{Position, Timestamp};

mod read;

/// See the module.
#[derive(Debug)]
pub struct Watcher {
    sessions: Sessions,
    deadline: Duration,
    state: Mutex<Option<State>>,
}

/// What the watcher saw, and when.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// How far it is safe to read.
    pub horizon: Horizon,
    /// When the answer came, by this process's clock.
    pub answered: Instant,
    /// How long the look took.
    pub took: Duration,
    /// The server whose writers were looked at: the horizon says nothing about another one's rows.
    pub server: Arc<Server>,
}

impl Sighting {
    /// The database's clock now, as far as it can be told without asking; at most [`Self::took`] behind.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.horizon.observed_at.plus(self.answered.elapsed())
    }

    /// How long until a row is older than the latency window, if nothing but the window holds it back.
    #[must_use]
    pub fn until_safe(&self, row: &Position, margin: Margin) -> Duration {
        row.created_at.plus(margin.window).plus(margin.precision).since(self.clock())
    }

    /// The latest that the database's clock can show now, if it has not been set: the answer may have been long on its way.
    #[must_use]
    pub fn latest_clock(&self) -> Timestamp {
        self.clock().plus(self.took)
    }
}

#[derive(Debug)]
struct State {
    session: Session,
    tables: HashMap<Stream, Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    history: History,
    confirmed: Confirmed,
    answered: Option<Instant>,
    family: Vec<u32>,
    /// Which writers were looked for.
    looked_for: Option<(Rule, bool)>,
}

impl Watcher {
    /// A watcher that opens its own session at the first scan; a scan that takes longer than `deadline` fails.
    #[must_use]
    pub fn new(sessions: Sessions, deadline: Duration) -> Self {
        Self { sessions, deadline, state: Mutex::new(None) }
    }

    /// Scans the writers of a table and returns how far it is safe to read. The result holds for every snapshot taken
    /// later. A second look follows when a new writer shows: usually it has ended by then, and else its start is read.
    ///
    /// # Errors
    /// When the connection fails; the next scan opens another.
    pub async fn scan(&self, shape: &Shape) -> Result<Sighting, Error> {
        Ok(self.scan_all(&[shape]).await?.swap_remove(0))
    }

    /// The same of several tables by one look, in their order.
    ///
    /// # Errors
    /// When the connection fails; the next scan opens another.
    pub async fn scan_all(&self, shapes: &[&Shape]) -> Result<Vec<Sighting>, Error> {
        let mut guard = self.state.lock().await;
        let begun = Instant::now();
        let mut state = match guard.take() {
            Some(state) if !state.session.is_closed() => state,
            _ => State { session: self.sessions.open().await?, tables: HashMap::new() },
        };
        // The state is put back only after a whole scan: a cancelled or failed one leaves no half-read history.
        let mut horizons = self.bounded(&mut state, shapes, &[]).await?;
        let again: Vec<usize> = (0..shapes.len()).filter(|&index| horizons[index].rescan).collect();
        if !again.is_empty() {
            let new: Vec<&Shape> = again.iter().map(|&index| shapes[index]).collect();
            let held =
                again.iter().flat_map(|&index| horizons[index].held_by.iter().chain(&horizons[index].passed_over));
            let mut pids: Vec<i32> = held.filter_map(|held| held.holder.pid).collect();
            pids.sort_unstable();
            pids.dedup();
            for (index, horizon) in again.into_iter().zip(self.bounded(&mut state, &new, &pids).await?) {
                horizons[index] = horizon;
            }
        }
        let server = Arc::clone(&state.session.server);
        *guard = Some(state);
        let (answered, took) = (Instant::now(), begun.elapsed());
        Ok(horizons
            .into_iter()
            .map(|horizon| Sighting { horizon, answered, took, server: Arc::clone(&server) })
            .collect())
    }

    /// Closes the session: the next scan opens another, perhaps on another server, and remembers nothing.
    pub async fn forget(&self) {
        *self.state.lock().await = None;
    }

    async fn bounded(&self, state: &mut State, shapes: &[&Shape], pids: &[i32]) -> Result<Vec<Horizon>, Error> {
        let scan = scan(state, shapes, pids);
        tokio::time::timeout(self.deadline, scan).await.map_err(|_| Error::Timeout(self.deadline))?
    }
}

/// One reading of the clock, and then one of the locks and sessions that count for all these tables. Before them, the
/// starts of transactions that the scan before saw run by `pids`.
async fn scan(state: &mut State, shapes: &[&Shape], pids: &[i32]) -> Result<Vec<Horizon>, Error> {
    let asked = Instant::now();
    let read = read(&state.session, shapes, pids).await?;
    let answered = Instant::now();
    let horizons = shapes.iter().map(|shape| {
        let family = shape.family();
        let remembered = state.tables.entry(shape.config.clone()).or_default();
        let looked_for = Some((shape.rule, shape.own_role_only_reads));
        if remembered.family != family || remembered.looked_for != looked_for {
            // What was absent from the old family, or was not looked for, says nothing about what is new in this one.
            *remembered = Remembered { family, looked_for, ..Remembered::default() };
        }
        let elapsed = remembered.answered.map_or(Duration::ZERO, |answered| asked.duration_since(answered));
        remembered.answered = Some(answered);
        let found = read.found(shape, &remembered.family);
        let mut horizon = remembered.history.observe(Scan { at: read.at, elapsed, found }, shape.margin);
        if let Some(longest) = shape.passes_over_after() {
            remembered.history.pass_over(&mut horizon, longest, shape.margin);
        }
        if shape.config.standbys > 0 {
            remembered.confirmed.hold(&mut horizon, &read.wal, shape.config.standbys.into());
        }
        horizon
    });
    Ok(horizons.collect())
}
