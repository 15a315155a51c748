//! What a replica does about a cursor that another replica moves: nothing, as long as that one is quick.
//!
//! Taking turns at one cursor costs the database as often as there are replicas. So the replica that has moved a cursor last
//! keeps it, and the others look rarely: what the cursor's row says shows them that it is moved. It is taken over when rows wait
//! before it and it has stood still for a moment, whatever the reason; a replica that only seems to be gone still has the lock,
//! which decides. Nothing that is delivered depends on this.

use std::time::{Duration, Instant};

use crate::pace;
use crate::position::Position;

/// A cursor that no replica has moved for so long is taken over when this replica first sees it, and also when it has seen it
/// stand still for so long.
const ABANDONED: Duration = Duration::from_secs(1);

/// A replica that has moved the cursor itself so lately does not leave it to another one before that has proved to be quick:
/// after a stall each might leave it to the other.
const CONTENDS: Duration = Duration::from_secs(1);

/// How long a cursor may stand still before rows that wait: two fifths of the standby's pause, and longer where freshness lets
/// its holder look less often.
fn patience(config: &pace::Config) -> Duration {
    config.standby.mul_f64(0.4).max(shortest(config))
}

/// The same for a replica that has moved it itself a moment ago.
fn shortest(config: &pace::Config) -> Duration {
    let look = config.freshness.max(config.min);
    look + look / 4
}

/// The pause between two looks at a cursor that another replica moves: with [`patience`], no more than the standby's pause. By
/// `chance`, which lies in 0..1, so that standbys do not look together.
#[must_use]
pub(in crate::relay) fn pause(config: &pace::Config, chance: f64) -> Duration {
    config.standby.mul_f64(0.3 + 0.3 * chance.clamp(0.0, 1.0)).max(shortest(config))
}

/// What is known of a cursor that another replica has moved last.
#[derive(Debug, Default)]
pub(in crate::relay) struct Standby {
    /// Where it stood at the last look, and since when it was seen there.
    stood: Option<(Option<Position>, Instant)>,
    /// When this replica moved it last.
    moved: Option<Instant>,
}

impl Standby {
    /// This replica has moved it.
    pub(in crate::relay) fn moved(&mut self, now: Instant) {
        self.moved = Some(now);
    }

    /// Whether this replica has moved it a moment ago, and is still in the running.
    pub(in crate::relay) fn contends(&self, now: Instant) -> bool {
        self.moved.is_some_and(|moved| now.saturating_duration_since(moved) < CONTENDS)
    }

    /// When to look again at a cursor before which rows wait, which another replica moved `rested` ago; none when it is to be
    /// taken over now.
    pub(in crate::relay) fn until(
        &mut self,
        position: Option<&Position>,
        rested: Duration,
        config: &pace::Config,
        (now, chance): (Instant, f64),
    ) -> Option<Instant> {
        let (patience, pause) = match self.contends(now) {
            true => (shortest(config), shortest(config)),
            false => (patience(config), pause(config, chance)),
        };
        let since = match &self.stood {
            None if rested >= ABANDONED => return None,
            Some((stood, since)) if stood.as_ref() == position => *since,
            Some(_) | None => {
                self.stood = Some((position.cloned(), now));
                now
            }
        };
        // Whatever its row says of the time: a clock that was set back may show an advance of tomorrow.
        if now.saturating_duration_since(since) >= ABANDONED.max(patience * 2) {
            return None;
        }
        if rested < patience {
            return Some(now + pause);
        }
        Some(since + patience).filter(|due| *due > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    const MS: Duration = Duration::from_millis(1);

    fn at(micros: i64) -> Position {
        Position { created_at: Timestamp::from_pg_micros(micros), id: Some("1".to_owned()) }
    }

    fn until(standby: &mut Standby, at: &Position, rested: Duration, now: Instant) -> Option<Duration> {
        let config = pace::Config::default();
        standby.until(Some(at), rested, &config, (now, 1.0)).map(|due| due.duration_since(now))
    }

    #[test]
    fn moving_cursor_is_left_alone() {
        let (mut standby, now) = (Standby::default(), Instant::now());
        for look in 0..100 {
            assert_eq!(until(&mut standby, &at(look), MS * 20, now), Some(MS * 150));
        }
    }

    #[test]
    fn cursor_that_stands_still_before_rows_is_taken_over_within_the_pause_of_a_standby() {
        for looked in 0..150 {
            // Its holder ends `looked` before the first look that finds it where it stays.
            let (mut standby, begun) = (Standby::default(), Instant::now());
            let (mut now, mut rested) = (begun, MS * looked);
            while let Some(pause) = until(&mut standby, &at(1), rested, now) {
                (now, rested) = (now + pause, rested + pause);
            }
            assert!(rested <= MS * 250, "{rested:?} after {looked} ms");
        }
    }

    #[test]
    fn row_that_has_just_come_is_left_to_the_replica_that_moved_the_cursor_last() {
        let (mut standby, now) = (Standby::default(), Instant::now());
        assert_eq!(until(&mut standby, &at(1), MS * 900, now), Some(MS * 100));
        assert_eq!(until(&mut standby, &at(2), MS * 40, now + MS * 100), Some(MS * 150), "it has");
        assert_eq!(until(&mut standby, &at(3), MS * 160, now + MS * 250), Some(MS * 100));
        assert_eq!(until(&mut standby, &at(3), MS * 260, now + MS * 350), None, "it has not");
    }

    #[test]
    fn of_two_replicas_that_have_moved_it_lately_none_leaves_it_for_long() {
        let (mut standby, now) = (Standby::default(), Instant::now());
        standby.moved(now);
        let shortest = MS * 12 + MS / 2;
        assert_eq!(until(&mut standby, &at(1), MS, now), Some(shortest));
        assert_eq!(until(&mut standby, &at(1), MS + shortest, now + shortest), None);
    }

    #[test]
    fn advance_of_tomorrow_does_not_keep_others_away() {
        let (mut standby, begun) = (Standby::default(), Instant::now());
        let mut now = begun;
        while let Some(pause) = until(&mut standby, &at(1), Duration::ZERO, now) {
            now += pause;
            assert!(now - begun < Duration::from_secs(2));
        }
    }

    #[test]
    fn cursor_that_no_replica_has_moved_for_long_is_taken_over_at_the_first_look() {
        assert_eq!(until(&mut Standby::default(), &at(1), ABANDONED, Instant::now()), None);
    }
}
