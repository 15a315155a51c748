//! One look at a table: who is writing, which row is the newest that is safe to read, where the cursors stand.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::cursor::{self, Standing};
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// What one look found.
#[derive(Debug)]
pub(in crate::relay) struct Look {
    /// Who is writing, and how far it is safe to read.
    pub(in crate::relay) sighting: Sighting,
    /// The newest row of all that is not in the future.
    pub(in crate::relay) latest: Option<Position>,
    /// The newest row that is safe to read.
    pub(in crate::relay) newest: Option<Position>,
    /// When the look before was made, by the database's clock: a row that is new was not visible then.
    pub(in crate::relay) before: Option<Timestamp>,
    /// The cursors, by name.
    pub(in crate::relay) standings: HashMap<String, Standing>,
    /// The same two rows of each cursor that reads a shard.
    pub(in crate::relay) shards: HashMap<String, Newest>,
    /// The cursors that rows have come late for, by name.
    pub(in crate::relay) late: HashSet<String>,
}

/// The newest rows that a cursor can come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relay) struct Newest {
    /// See [`Look::latest`].
    pub(in crate::relay) latest: Option<Position>,
    /// See [`Look::newest`].
    pub(in crate::relay) newest: Option<Position>,
}

impl Look {
    /// The newest row of all that is not in the future at the database's time `now`: a short look.
    pub(in crate::relay) async fn glance(
        session: &Session,
        shape: &Shape,
        now: Timestamp,
        deadline: Duration,
    ) -> Result<Option<Position>, Error> {
        let glance = Self::newest_of(session, shape, now);
        tokio::time::timeout(deadline, glance).await.map_err(|_| Error::Timeout(deadline))?
    }

    /// The same without a deadline.
    pub(in crate::relay) async fn newest_of(
        session: &Session,
        shape: &Shape,
        now: Timestamp,
    ) -> Result<Option<Position>, Error> {
        let statement = session.prepare_cached(&shape.newest_sql()).await?;
        newest(session, shape, &statement, &[&now]).await
    }

    /// Looks, after the scan of `sighting`.
    pub(in crate::relay) async fn take(
        session: &Session,
        shape: &Shape,
        names: &[&str],
        sighting: Sighting,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let statement = session.prepare_cached(&shape.newest_sql()).await?;
        let look = async {
            let now = [&sighting.clock() as &(dyn ToSql + Sync)];
            let both =
                async { tokio::try_join!(newest(session, shape, &statement, &now), cursor::standings(session, names)) };
            let (latest, standings) = both.await?;
            let horizon = sighting.horizon.at;
            let newest = match &latest {
                Some(position) if position.created_at < horizon => latest.clone(),
                Some(_) if horizon.is_finite() => newest(session, shape, &statement, &[&horizon]).await?,
                Some(_) | None => None,
            };
            Ok::<_, Error>((latest, newest, standings))
        };
        let (latest, newest, standings) =
            tokio::time::timeout(deadline, look).await.map_err(|_| Error::Timeout(deadline))??;
        let standings = standings.into_iter().map(|standing| (standing.name.clone(), standing)).collect();
        Ok(Self { sighting, latest, newest, before: None, standings, shards: HashMap::new(), late: HashSet::new() })
    }

    /// When the newest row will be safe to read, if nothing but the latency window is in its way now.
    pub(in crate::relay) fn safe_at(&self) -> Option<Instant> {
        let horizon = &self.sighting.horizon;
        let newest = self.latest.as_ref().filter(|latest| latest.created_at >= horizon.at)?;
        let free = horizon.held_by.is_empty() && horizon.at.is_finite();
        free.then(|| self.sighting.answered + newest.created_at.since(horizon.at))
    }

    /// Where the cursor of this name stands.
    pub(in crate::relay) fn standing(&self, name: &str) -> Option<&Standing> {
        self.standings.get(name)
    }

    /// Whether a cursor has something to read, as far as can be told without ordering ids: at the same instant, another
    /// id than the newest is taken to be before it.
    pub(in crate::relay) fn is_behind(&self, standing: &Standing) -> bool {
        behind(standing.position.as_ref(), self.newest_for(standing))
    }

    /// The newest row that is safe to read and that this cursor can come to.
    pub(in crate::relay) fn newest_for(&self, standing: &Standing) -> Option<&Position> {
        self.shards.get(&standing.name).map_or(&self.newest, |shard| &shard.newest).as_ref()
    }

    /// The same, whether or not it is safe to read.
    pub(in crate::relay) fn latest_for(&self, standing: &Standing) -> Option<&Position> {
        self.shards.get(&standing.name).map_or(&self.latest, |shard| &shard.latest).as_ref()
    }

    /// Whether there are rows beyond the cursor's position, safe to read or not; the same can be told as of
    /// [`Self::is_behind`].
    pub(in crate::relay) fn is_waited_for(&self, standing: &Standing) -> bool {
        behind(standing.position.as_ref(), self.latest_for(standing))
    }

    /// Whether rows are waiting for the cursor, none of them safe to read, because somebody may still be writing.
    pub(in crate::relay) fn is_held(&self, standing: &Standing) -> bool {
        self.is_waited_for(standing) && !self.is_behind(standing) && !self.sighting.horizon.held_by.is_empty()
    }
}

async fn newest(
    session: &Session,
    shape: &Shape,
    statement: &Statement,
    below: &[&(dyn ToSql + Sync)],
) -> Result<Option<Position>, Error> {
    let row = match session.query_opt(statement, below).await.map_err(Error::from) {
        // Its id is for a turn to name, and the rows before it are not to wait: here its instant is enough.
        Err(error) if error.is_not_utf8() => {
            let instant = format!("SELECT r.at, NULL::text FROM ({}) AS r (at, id)", shape.newest_sql());
            session.query_opt(&instant, below).await?
        }
        row => row?,
    };
    Ok(match row {
        Some(row) => Some(Position { created_at: row.try_get(0)?, id: row.try_get(1)? }),
        None => None,
    })
}

fn behind(position: Option<&Position>, newest: Option<&Position>) -> bool {
    let Some(newest) = newest else { return false };
    let Some(position) = position else { return true };
    position.created_at < newest.created_at || (position.created_at == newest.created_at && position.id != newest.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::horizon::{Held, Holder, Horizon, Why};

    fn at(micros: i64, id: Option<&str>) -> Position {
        Position { created_at: Timestamp::from_pg_micros(micros), id: id.map(str::to_owned) }
    }

    fn look(latest: Option<Position>, horizon: Timestamp, held_by: Vec<Held>) -> Look {
        let observed_at = Timestamp::from_pg_micros(1_000);
        let horizon = Horizon {
            at: horizon,
            observed_at,
            held_by,
            passed_over: Vec::new(),
            held_since: observed_at,
            rescan: false,
            stepped_back: None,
        };
        let sighting = Sighting { horizon, answered: Instant::now(), took: Duration::ZERO, server: Default::default() };
        let (standings, shards, late) = Default::default();
        Look { sighting, latest, newest: None, before: None, standings, shards, late }
    }

    #[test]
    fn a_row_that_only_the_latency_window_holds_back_is_looked_for_when_it_is_safe() {
        let horizon = Timestamp::from_pg_micros(900);
        let waits = |look: &Look| look.safe_at().map(|at| at.duration_since(look.sighting.answered).as_micros());
        assert_eq!(waits(&look(Some(at(950, None)), horizon, Vec::new())), Some(50));
        assert_eq!(waits(&look(Some(at(899, None)), horizon, Vec::new())), None, "safe already");
        assert_eq!(waits(&look(None, horizon, Vec::new())), None);
        assert_eq!(waits(&look(Some(at(950, None)), Timestamp::NEG_INFINITY, Vec::new())), None);
        let holder = Holder { transaction: "3/1".to_owned(), pid: None, application: None, started: None };
        let held = Held { holder, bound: Some(horizon), why: Why::default() };
        assert_eq!(waits(&look(Some(at(950, None)), horizon, vec![held])), None, "nobody knows when a writer ends");
    }

    #[test]
    fn a_cursor_is_behind_unless_the_newest_safe_row_is_its_own() {
        assert!(!behind(None, None));
        assert!(behind(None, Some(&at(1, Some("a")))));
        assert!(behind(Some(&at(1, None)), Some(&at(1, Some("a")))));
        assert!(behind(Some(&at(1, Some("b"))), Some(&at(1, Some("a")))));
        assert!(!behind(Some(&at(1, Some("a"))), Some(&at(1, Some("a")))));
        assert!(!behind(Some(&at(2, Some("a"))), Some(&at(1, Some("z")))));
    }
}
