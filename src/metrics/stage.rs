//! Where the time of a row goes, told by one row at a time.
//!
//! Pure. Nobody can say of every row when it became visible, but of the newest row that is known: the look before did
//! not see it, this one does. So one such row is followed until it is delivered, then the next. Its four stages add up
//! to its age while it waits, and to its delivery latency in the end. All instants are those of PostgreSQL's clock.
//!
//! What is not known is never blamed on writers or receivers: it counts as queue.

use std::time::Duration;

use crate::position::Timestamp;

/// The four stages, in the order of [`super::Stage::ALL`].
pub(super) type Stages = [Duration; 4];

/// A row that a look saw for the first time.
#[derive(Clone, Copy, Debug)]
struct Row {
    created_at: Timestamp,
    /// Until then it was certainly not visible.
    unseen: Timestamp,
    /// When it was first seen.
    seen: Timestamp,
    /// When a look, or the scan of a turn, first found it below the horizon.
    safe: Option<Timestamp>,
}

impl Row {
    fn is_safe_below(&mut self, horizon: Timestamp, at: Timestamp) {
        if self.safe.is_none() && horizon > self.created_at {
            self.safe = Some(at);
        }
    }

    /// How its time until `at` splits. `trying`: since when its sink has been tried.
    fn stages(&self, trying: Option<Timestamp>, at: Timestamp) -> Stages {
        let total = at.since(self.created_at);
        let commit_wait = self.unseen.since(self.created_at).min(total);
        let hold = self.safe.unwrap_or(at).since(self.seen).min(total - commit_wait);
        let begun = trying.zip(self.safe).map(|(trying, safe)| trying.max(safe));
        let publish = begun.map_or(Duration::ZERO, |begun| at.since(begun)).min(total - commit_wait - hold);
        [commit_wait, hold, total - commit_wait - hold - publish, publish]
    }
}

/// What one look at a table says of a cursor.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    /// When the look before was made, whether or not it was told: it did not see what is new.
    pub before: Option<Timestamp>,
    /// When.
    pub at: Timestamp,
    /// How far it was safe to read.
    pub horizon: Timestamp,
    /// `created_at` of the newest row, safe or not.
    pub newest: Option<Timestamp>,
    /// How far the cursor has come.
    pub position: Option<Timestamp>,
    /// Some replica's last try failed at the sink, and will be repeated.
    pub failing: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Follower {
    looked: Option<Timestamp>,
    newest: Option<Row>,
    followed: Option<Row>,
    /// Since when turns have tried the sink: the first of those that failed at it, else the one that runs.
    trying: Option<Timestamp>,
    in_turn: bool,
    /// What the look before said of the sink.
    failing: bool,
    /// The slowest row that was delivered since it was last asked for.
    slowest: Option<Stages>,
}

impl Follower {
    pub(super) fn looked(&mut self, look: Looked) {
        self.looked = self.looked.map(|looked| look.before.map_or(looked, |before| looked.max(before)));
        let news = look.newest.filter(|at| self.newest.is_none_or(|row| row.created_at != *at));
        if let Some(created_at) = news {
            // At the first look nothing is known of before.
            let unseen = self.looked.map_or(created_at, |looked| looked.max(created_at));
            self.newest = Some(Row { created_at, unseen, seen: look.at.max(unseen), safe: None });
        }
        self.looked = Some(look.at);
        for row in [&mut self.newest, &mut self.followed].into_iter().flatten() {
            row.is_safe_below(look.horizon, look.at);
        }
        // What another replica has tried counts for this one, too, and so does its success.
        match (self.failing, look.failing) {
            (false, true) => self.trying = self.trying.or(Some(look.at)),
            (true, false) if !self.in_turn => self.trying = None,
            _ => {}
        }
        self.failing = look.failing;
        let waits = |row: &Row| look.position.is_none_or(|position| position < row.created_at);
        // A turn of this replica tells itself what it has delivered; another replica has delivered the rest.
        if !self.in_turn {
            self.followed = self.followed.filter(waits);
        }
        self.followed = self.followed.or(self.newest.filter(waits));
    }

    pub(super) fn turn_begun(&mut self, at: Timestamp, horizon: Timestamp) {
        self.in_turn = true;
        self.trying = self.trying.or(Some(at));
        if let Some(row) = &mut self.followed {
            row.is_safe_below(horizon, at);
        }
    }

    /// `reached`: the last row that was delivered. `at_sink`: it ended because the sink failed, and will be repeated.
    pub(super) fn turn_ended(&mut self, at: Timestamp, reached: Option<Timestamp>, at_sink: bool) {
        self.in_turn = false;
        if let Some(row) = self.followed.take_if(|row| reached >= Some(row.created_at)) {
            let stages = row.stages(self.trying, at);
            self.slowest = Some(slower(self.slowest, stages));
        }
        let tried_elsewhere = self.failing && reached.is_none();
        if !(at_sink || tried_elsewhere) {
            self.trying = None;
        }
    }

    /// The slowest of the rows delivered since the last call and the one that waits now; zero without any. `waiting`:
    /// there are rows beyond the position.
    pub(super) fn sampled(&mut self, at: Timestamp, waiting: bool) -> Stages {
        if !waiting && !self.in_turn {
            self.followed = None;
        }
        let slowest = self.slowest.take();
        match self.followed {
            Some(row) => slower(slowest, row.stages(self.trying, at)),
            None => slowest.unwrap_or_default(),
        }
    }
}

fn slower(one: Option<Stages>, other: Stages) -> Stages {
    let total = |stages: &Stages| stages.iter().sum::<Duration>();
    one.filter(|one| total(one) >= total(&other)).unwrap_or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_pg_micros(seconds * 1_000_000)
    }

    fn look(now: i64, horizon: i64, newest: i64, position: i64) -> Looked {
        Looked {
            before: None,
            at: at(now),
            horizon: at(horizon),
            newest: Some(at(newest)),
            position: Some(at(position)),
            failing: false,
        }
    }

    fn seconds(stages: Stages) -> [u64; 4] {
        stages.map(|stage| stage.as_secs())
    }

    /// Row 10 is not seen at 14, seen at 15, safe at 22.
    fn held() -> Follower {
        let mut follower = Follower::default();
        follower.looked(look(9, 8, 5, 5));
        follower.looked(look(14, 8, 5, 5));
        follower.looked(look(15, 8, 10, 5));
        follower.looked(look(20, 9, 12, 5));
        follower.looked(look(22, 21, 12, 5));
        follower
    }

    // Guarantee: observe.lag-stages
    #[test]
    fn the_stages_of_a_delivered_row_add_up_to_its_latency() {
        let mut follower = held();
        follower.turn_begun(at(25), at(24));
        follower.turn_ended(at(28), Some(at(12)), false);
        assert_eq!(seconds(follower.sampled(at(29), false)), [4, 7, 4, 3]);
        assert_eq!(seconds(follower.sampled(at(34), false)), [0; 4], "nothing was delivered since");
    }

    #[test]
    fn a_waiting_row_shows_the_stage_that_it_is_in() {
        let mut follower = Follower::default();
        follower.looked(look(9, 8, 5, 5));
        follower.looked(look(14, 8, 10, 5));
        assert_eq!(seconds(follower.sampled(at(20), true)), [0, 6, 4, 0]);
        assert_eq!(seconds(held().sampled(at(30), true)), [4, 7, 9, 0]);
    }

    #[test]
    fn tries_that_fail_at_the_sink_are_publishing_and_other_failures_are_queue() {
        for (at_sink, expected) in [(true, [4, 7, 4, 15]), (false, [4, 7, 19, 0])] {
            let mut follower = held();
            follower.turn_begun(at(25), at(24));
            follower.turn_ended(at(28), None, at_sink);
            assert_eq!(seconds(follower.sampled(at(40), true)), expected);
        }
    }

    #[test]
    fn an_outage_from_before_a_row_is_not_counted_to_it() {
        let mut follower = Follower::default();
        follower.looked(look(1, 0, 0, 0));
        follower.turn_begun(at(2), at(1));
        follower.turn_ended(at(3), None, true);
        follower.looked(look(10, 10, 9, 0));
        assert_eq!(seconds(follower.sampled(at(20), true)), [0, 0, 1, 10]);
    }

    #[test]
    fn what_another_replica_tries_in_vain_is_publishing_here_too() {
        let mut follower = held();
        let failing = |now| Looked { failing: true, ..look(now, now - 1, 12, 5) };
        follower.looked(failing(30));
        follower.looked(failing(35));
        assert_eq!(seconds(follower.sampled(at(40), true)), [4, 7, 9, 10]);
        follower.turn_begun(at(40), at(39));
        follower.turn_ended(at(40), None, false); // another replica holds it
        assert_eq!(seconds(follower.sampled(at(41), true)), [4, 7, 9, 11]);
        follower.looked(look(42, 41, 12, 5));
        assert_eq!(
            seconds(follower.sampled(at(43), true)),
            [4, 7, 22, 0],
            "the sink is back, and other rows come first"
        );
    }

    #[test]
    fn what_another_replica_delivered_is_not_told_and_what_came_before_the_first_look_is_queue() {
        let mut follower = held();
        follower.looked(look(23, 22, 12, 12));
        assert_eq!(seconds(follower.sampled(at(24), true)), [0; 4]);
        let mut follower = Follower::default();
        follower.looked(look(50, 49, 10, 5));
        assert_eq!(seconds(follower.sampled(at(60), true)), [0, 0, 50, 0]);
        assert_eq!(seconds(follower.sampled(at(70), false)), [0; 4], "the row was deleted");
    }

    #[test]
    fn a_row_that_came_while_another_was_followed_is_followed_next() {
        let mut follower = held();
        follower.turn_begun(at(22), at(22));
        follower.turn_ended(at(23), Some(at(10)), false);
        follower.sampled(at(23), true);
        follower.looked(look(24, 23, 12, 10));
        assert_eq!(seconds(follower.sampled(at(30), true)), [3, 2, 13, 0], "12 was unseen until 15, seen at 20");
    }

    /// A receiver that takes 3 s for each row: the row's own attempt is publishing, those of the rows before it are not.
    #[test]
    fn rows_before_it_at_a_slow_receiver_are_queue() {
        let mut follower = Follower::default();
        follower.looked(look(9, 9, 5, 5));
        follower.looked(look(10, 10, 10, 5));
        follower.looked(look(11, 11, 10, 5));
        for (begun, row) in [(11, 6), (14, 7), (17, 8), (20, 9)] {
            follower.turn_begun(at(begun), at(begun));
            follower.turn_ended(at(begun + 3), Some(at(row)), false);
            assert_eq!(follower.sampled(at(begun + 3), true)[3], Duration::ZERO, "its own attempt has not begun");
        }
        follower.turn_begun(at(23), at(23));
        follower.turn_ended(at(26), Some(at(10)), false);
        assert_eq!(seconds(follower.sampled(at(26), false)), [0, 1, 12, 3]);
    }
}
