//! When a group's looks may be short: only the newest row is asked for.
//!
//! A group rests after a full look that found nothing to wait for: no relay of its that could begin a turn, and the
//! newest row `N` below the horizon `H` of that look. Then no row can become visible without another row being the newest:
//!
//! - `H` stays true for every later snapshot (see [`crate::source::horizon`]): what becomes visible later has
//!   `created_at ≥ H > N`. So it, or a row newer still, takes `N`'s place.
//! - A row that is committed late, below a newer one that is visible already, is the case that this rules out: its writer
//!   held the horizon below `N`, so the group did not rest, and each of its looks was a full one until the writer was gone.
//! - A transaction that is not waited for any longer (`max_hold`) may commit below `N`. Its rows are late ones: they are asked for by their
//!   transaction, once a second, also while the group rests.
//! - A row in the future is no newest row before its time has come, and is one then.
//!
//! A group rests without a look of its own when that full look began turns, for nothing but rows up to `N`, and each has
//! ended with its cursor at `N`: its snapshot is later than the look's scan, so it has read every row below `H` that ever
//! becomes visible, and what lies above `H` takes `N`'s place as before. What operators have said since is in the bulletin,
//! whose number was asked for before the look.
//!
//! What no row tells (an operator's change, a pause, a halt, a redrive) the [`crate::relay::engine::control_changes`] does, and a full look is made
//! every five seconds all the same. The catalog is read less often while a group rests, but never less than a second
//! before a turn begins. The writers are looked for once a second, and at each short look while there are any: the bound of
//! one whose start cannot be read is the last look before it. The [`crate::relay::stream::idle_poller`] makes a
//! group's short looks, together with those of others.

use std::time::{Duration, Instant};

use crate::position::Position;
use crate::relay::stream::poll::Look;
use crate::source::watcher::Sighting;

/// A full look is made as often as this, whatever the newest row is.
pub(in crate::relay) const FULL: Duration = Duration::from_secs(5);
/// Writers are looked for as often as this.
const SCAN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct Rest {
    /// The last look at the writers.
    pub(in crate::relay) sighting: Sighting,
    newest: Option<Position>,
    /// The bulletin's number before the full look.
    bulletin: u64,
    begun: Instant,
}

impl Rest {
    /// Begins after a full look whose newest row is safe to read. That no relay has anything to do is the caller's to say.
    pub(in crate::relay) fn after(look: &Look, bulletin: u64) -> Option<Self> {
        let safe = look.newest == look.latest;
        let (sighting, newest) = (look.sighting.clone(), look.latest.clone());
        safe.then(|| Self { sighting, newest, bulletin, begun: Instant::now() })
    }

    /// Whether a full look is due, with this number of the bulletin.
    pub(in crate::relay) fn is_over(&self, bulletin: u64) -> bool {
        self.begun.elapsed() >= FULL || self.bulletin != bulletin
    }

    /// How long it lasts at most from now on.
    pub(in crate::relay) fn left(&self) -> Duration {
        FULL.saturating_sub(self.begun.elapsed())
    }

    /// Whether to look for writers again.
    pub(in crate::relay) fn wants_scan(&self) -> bool {
        !self.sighting.horizon.held_by.is_empty() || self.sighting.answered.elapsed() >= SCAN
    }

    /// Whether a cursor stands at the newest row.
    pub(in crate::relay) fn has_arrived(&self, position: Option<&Position>) -> bool {
        self.newest.is_some() && self.newest.as_ref() == position
    }

    /// Whether a short look that found this newest row found nothing new.
    pub(in crate::relay) fn is_of(&self, newest: Option<&Position>) -> bool {
        self.newest.as_ref() == newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;
    use crate::source::horizon::{Held, Holder, Horizon, Why};

    fn at(micros: i64) -> Position {
        Position { created_at: Timestamp::from_pg_micros(micros), id: Some("1".to_owned()) }
    }

    fn look(latest: Option<Position>, newest: Option<Position>, horizon: i64) -> Look {
        let holder = Holder { transaction: "3/1".to_owned(), pid: Some(1), application: None, started: None };
        let horizon = Horizon {
            at: Timestamp::from_pg_micros(horizon),
            observed_at: Timestamp::from_pg_micros(100),
            held_by: vec![Held { holder, bound: Some(Timestamp::from_pg_micros(horizon)), why: Why::default() }],
            passed_over: Vec::new(),
            held_since: Timestamp::from_pg_micros(horizon),
            rescan: false,
            stepped_back: None,
        };
        let sighting = Sighting { horizon, answered: Instant::now(), took: Duration::ZERO, server: Default::default() };
        let (standings, shards, late) = Default::default();
        Look { sighting, latest, newest, before: None, standings, shards, late }
    }

    // Guarantee: delivery.idle-late-commit
    #[test]
    fn a_writer_below_the_newest_row_lets_nobody_rest_and_one_above_it_does() {
        assert!(Rest::after(&look(Some(at(50)), Some(at(40)), 45), 1).is_none(), "a row below 50 may still come");
        assert!(Rest::after(&look(Some(at(50)), None, 0), 1).is_none());
        assert!(Rest::after(&look(Some(at(50)), Some(at(50)), 60), 1).is_some(), "whatever comes lies above 60");
        assert!(Rest::after(&look(None, None, 0), 1).is_some(), "whatever comes is the newest");
    }

    #[test]
    fn another_newest_row_ends_it_and_so_does_its_deletion() {
        let rest = Rest::after(&look(Some(at(50)), Some(at(50)), 60), 1).expect("safe");
        assert!(rest.is_of(Some(&at(50))) && !rest.is_over(1) && rest.is_over(2));
        assert!(!rest.is_of(Some(&at(51))));
        assert!(!rest.is_of(None));
    }
}
