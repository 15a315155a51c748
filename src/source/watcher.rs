//! The watcher: looks at who is writing, and says how far a table is safe to read.
//!
//! One per replica, for all tables, on a connection of its own, in autocommit: inside a transaction PostgreSQL would
//! show the statistics of its first look for ever. What it remembers of its scans dies with the connection, because
//! virtual transaction ids are used again after a restart of the server.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;

use super::horizon::{History, Holder, Horizon, Scan};
use super::shape::Shape;
use super::{Rule, Stream};
use crate::database::{Error, Session, Sessions};
use crate::position::Timestamp;

const CLOCK: &str = "SELECT pg_catalog.clock_timestamp()";

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
}

impl Sighting {
    /// The database's clock now, as far as it can be told without asking; at most [`Self::took`] behind.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.horizon.observed_at.plus(self.answered.elapsed())
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

    /// Scans the writers of a table and says how far it is safe to read. The answer holds for every snapshot taken
    /// later. A writer that has only just begun is looked at once more, because it is gone as a rule.
    ///
    /// # Errors
    /// When the connection fails; the next scan opens another.
    pub async fn scan(&self, shape: &Shape) -> Result<Sighting, Error> {
        let mut guard = self.state.lock().await;
        let begun = Instant::now();
        let mut state = match guard.take() {
            Some(state) if !state.session.is_closed() => state,
            _ => State { session: self.sessions.open().await?, tables: HashMap::new() },
        };
        // The state is put back only after a whole scan: a cancelled or failed one leaves no half-read history.
        let first = self.bounded(&mut state, shape).await?;
        let horizon = if first.rescan { self.bounded(&mut state, shape).await? } else { first };
        *guard = Some(state);
        Ok(Sighting { horizon, answered: Instant::now(), took: begun.elapsed() })
    }

    async fn bounded(&self, state: &mut State, shape: &Shape) -> Result<Horizon, Error> {
        tokio::time::timeout(self.deadline, scan(state, shape)).await.map_err(|_| Error::Timeout(self.deadline))?
    }
}

async fn scan(state: &mut State, shape: &Shape) -> Result<Horizon, Error> {
    let family = shape.family();
    let session = &state.session;
    let remembered = state.tables.entry(shape.config.clone()).or_default();
    let looked_for = Some((shape.rule, shape.own_role_only_reads));
    if remembered.family != family || remembered.looked_for != looked_for {
        // What was absent from the old family, or was not looked for, says nothing about what is new in this one.
        *remembered = Remembered { family: family.clone(), looked_for, ..Remembered::default() };
    }
    let asked = Instant::now();
    let clock = session.prepare_cached(CLOCK).await?;
    // Clock and look are sent at once and run one after the other: the clock is read before the look begins.
    let clock = session.query_one(&clock, &[]);
    let family_parameter: [&(dyn ToSql + Sync); 1] = [&family];
    let reads_parameter: [&(dyn ToSql + Sync); 1] = [&shape.own_role_only_reads];
    let (at, rows) = match shape.rule {
        Rule::Window => (clock.await?, Vec::new()),
        Rule::Writers => {
            let look = session.prepare_cached(include_str!("sql/writers.sql")).await?;
            tokio::try_join!(biased; clock, session.query(&look, &family_parameter))?
        }
        Rule::Transactions => {
            let look = session.prepare_cached(include_str!("sql/transactions.sql")).await?;
            tokio::try_join!(biased; clock, session.query(&look, &reads_parameter))?
        }
    };
    let elapsed = remembered.answered.map_or(Duration::ZERO, |answered| asked.duration_since(answered));
    remembered.answered = Some(Instant::now());
    let mut seen = HashSet::new();
    let holders = rows
        .iter()
        .map(|row| Holder {
            transaction: row.get(0),
            pid: row.get(1),
            application: row.get(2),
            started: row.get::<_, Option<Timestamp>>(3),
        })
        .filter(|holder| seen.insert(holder.transaction.clone()))
        .collect();
    Ok(remembered.history.observe(Scan { at: at.get(0), elapsed, holders }, shape.margin))
}
