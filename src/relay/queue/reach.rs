//! How far a relay with lanes looks for jobs that may be sent.
//!
//! Pure. Most looks find enough lanes among the first due jobs. Where those are of lanes that are busy or wait, looks go farther, up to
//! `[relay.turn] window`, as long as that finds more. Looks that find nothing there take a fifth of the time at most.

use std::time::{Duration, Instant};

use crate::relay::Lanes;

/// Between one reach and the next.
const STEP: usize = 4;
/// So many due jobs for each that may be on its way are looked through first: those on their way are among them, and each takes its part of
/// the time in which nothing is begun.
const JOBS_OF_EACH: usize = 4;
/// And no fewer than these.
const LEAST: usize = 100;
/// How long looks stay far that found more.
const STAY: Duration = Duration::from_secs(1);
/// Pauses between far looks that found no more, by how long they take.
const REST: u32 = 4;
const SHORTEST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    least: usize,
    most: usize,
    /// How many a far look goes through.
    far: usize,
    state: State,
    /// What the last claim found nearby.
    found_near: usize,
    /// How long far looks have taken since the last near one.
    took: Duration,
    /// Far looks may take all of the time.
    tireless: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A look may be far from then on, if the near one finds too few.
    Near(Instant),
    /// It is not known whether that finds more.
    Tries,
    /// Until then.
    Far(Instant),
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It has found what there is.
    Done,
    /// One that goes farther.
    Again,
    /// Nothing yet: one that goes farther comes after this long.
    Later(Duration),
}

impl Reach {
    pub(super) fn new(lanes: Lanes, now: Instant) -> Self {
        let least = (lanes.in_flight * JOBS_OF_EACH).max(LEAST).min(lanes.window);
        let far = (least * STEP).min(lanes.window);
        Self {
            least,
            most: lanes.window,
            far,
            state: State::Near(now),
            found_near: 0,
            took: Duration::ZERO,
            tireless: false,
        }
    }

    /// Without pauses, in a process that ends when there is nothing to do: each look says so.
    pub(super) const fn tireless(mut self, tireless: bool) -> Self {
        self.tireless = tireless;
        self
    }

    /// How many due jobs are looked through.
    pub(super) const fn jobs(self) -> usize {
        match self.state {
            State::Near(_) => self.least,
            State::Tries | State::Far(_) => self.far,
        }
    }

    /// A look that took so long has found jobs that may be sent, or none; there may be `more` beyond those that were looked through.
    pub(super) fn looked(&mut self, found: bool, more: bool, took: Duration, now: Instant) -> Next {
        if !matches!(self.state, State::Near(_)) {
            self.took += took;
        }
        if found || !more && self.jobs() == self.least {
            return Next::Done;
        }
        match self.state {
            State::Near(next) if now < next => return Next::Later(next - now),
            State::Near(_) if self.far > self.least => {}
            State::Tries | State::Far(_) if more && self.far < self.most => self.far = (self.far * STEP).min(self.most),
            State::Near(_) | State::Tries | State::Far(_) => {
                self.near(now);
                return Next::Done;
            }
        }
        (self.state, self.found_near) = (State::Far(now + STAY), 0);
        Next::Again
    }

    /// A claim has found so many of the jobs for which there was room; there may be `more` beyond those that were looked through.
    pub(super) fn claimed(&mut self, (found, room): (usize, usize), more: bool, now: Instant) {
        match self.state {
            State::Near(next) => {
                self.found_near = found;
                if found < room && more && now >= next && self.far > self.least {
                    self.state = State::Tries;
                }
            }
            State::Tries if found > self.found_near => self.state = State::Far(now + STAY),
            State::Tries => {
                let farther = if self.far < self.most { self.far } else { self.least };
                self.far = (farther * STEP).min(self.most);
                self.near(now);
            }
            State::Far(until) if now < until => {}
            State::Far(_) => (self.state, self.took) = (State::Near(now), Duration::ZERO),
        }
    }

    /// The far looks have not been worth their time.
    fn near(&mut self, now: Instant) {
        let rest = (self.took * REST).clamp(SHORTEST_REST, LONGEST_REST);
        let rest = if self.tireless { Duration::ZERO } else { rest };
        (self.state, self.took) = (State::Near(now + rest), Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(30);

    fn reach(now: Instant) -> Reach {
        Reach::new(Lanes { in_flight: 20, window: 1_000, ..Lanes::default() }, now)
    }

    #[test]
    fn look_goes_as_far_as_window_where_nothing_may_be_sent() {
        let now = Instant::now();
        let mut reach = reach(now);
        assert_eq!(reach.jobs(), 100);
        assert_eq!(reach.looked(false, false, LOOK, now), Next::Done, "there are no others");
        assert_eq!((reach.looked(false, true, LOOK, now), reach.jobs()), (Next::Again, 400));
        assert_eq!((reach.looked(false, true, LOOK, now), reach.jobs()), (Next::Again, 1_000));
        assert_eq!(reach.looked(false, true, LOOK, now), Next::Done, "no farther than the window");
        assert_eq!(reach.jobs(), 100);
        let rest = LOOK * 2 * REST;
        assert_eq!(reach.looked(false, true, LOOK, now), Next::Later(rest), "that would take most of the time");
        assert_eq!((reach.looked(false, true, LOOK, now + rest), reach.jobs()), (Next::Again, 1_000));
        assert_eq!(reach.looked(true, true, LOOK, now + rest), Next::Done);
        reach.claimed((1, 20), true, now + rest);
        assert_eq!(reach.jobs(), 1_000, "for a while");
        reach.claimed((1, 20), true, now + rest + STAY);
        assert_eq!(reach.jobs(), 100);
        let mut once = self::reach(now).tireless(true);
        for next in [Next::Again, Next::Again, Next::Done, Next::Again] {
            assert_eq!(once.looked(false, true, LOOK, now), next, "without a pause");
        }
        let mut narrow = Reach::new(Lanes { in_flight: 500, window: 300, ..Lanes::default() }, now);
        assert_eq!((narrow.jobs(), narrow.looked(false, true, LOOK, now)), (300, Next::Done));
    }

    #[test]
    fn far_look_is_tried_where_lanes_are_few_and_repeated_only_if_it_pays() {
        let mut now = Instant::now();
        let mut reach = reach(now);
        reach.claimed((20, 20), true, now);
        assert_eq!(reach.jobs(), 100, "it found all");
        reach.claimed((2, 20), false, now);
        assert_eq!(reach.jobs(), 100, "there are no others");
        for far in [400, 1_000, 400] {
            reach.claimed((2, 20), true, now);
            assert_eq!(reach.jobs(), far);
            assert_eq!(reach.looked(true, true, LOOK, now), Next::Done);
            reach.claimed((2, 20), true, now);
            assert_eq!(reach.jobs(), 100, "it found no more");
            reach.claimed((2, 20), true, now);
            assert_eq!(reach.jobs(), 100, "not at once again");
            now += LOOK * REST;
        }
        reach.claimed((2, 20), true, now);
        reach.claimed((5, 20), true, now);
        assert_eq!(reach.jobs(), 1_000);
        reach.claimed((1, 20), true, now);
        assert_eq!(reach.jobs(), 1_000, "it found more a moment ago");
        now += STAY;
        reach.claimed((1, 20), true, now);
        assert_eq!(reach.jobs(), 100);
        reach.claimed((1, 20), true, now);
        assert_eq!(reach.jobs(), 1_000, "and again");
    }
}
