//! The same under `at_most_once`: rows are reserved before they are sent, and what may have been accepted is passed or listed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::checker::{Arrival, Committed, Outcome};
use super::{IN_FLIGHT, LANES, name, number};

/// How many rows are reserved for each message that may be on its way.
pub const RESERVED: usize = 4;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// The next row of a lane is sent although the one before it was refused for now, and comes again.
    LaneOvertakesItself,
    /// What was not answered clearly is sent again.
    SendsUnclearAgain,
    /// What was not answered clearly is passed and not listed.
    ListsNothingUnclear,
    /// After a kill, what was reserved is sent again.
    ForgetsReservation,
    /// After a kill, what was reserved is passed and not listed.
    ListsNoReservation,
    /// Each turn lists all that it has reserved.
    ListsAll,
    /// What was accepted beyond the position is forgotten by the next turn.
    ForgetsAhead,
}

/// See the module.
pub struct Model {
    plant: Plant,
    random: fastrand::Rng,
    /// The lane of each row.
    rows: Vec<usize>,
    /// So many rows are passed without a gap.
    position: usize,
    /// Rows beyond it that are passed.
    ahead: BTreeSet<usize>,
    arrivals: Vec<Arrival>,
    pub listed: BTreeSet<i64>,
    calm: bool,
    pub kills: usize,
}

impl Model {
    pub fn new(plant: Plant, seed: u64) -> Self {
        Self {
            plant,
            random: fastrand::Rng::with_seed(seed),
            rows: Vec::new(),
            position: 0,
            ahead: BTreeSet::new(),
            arrivals: Vec::new(),
            listed: BTreeSet::new(),
            calm: false,
            kills: 0,
        }
    }

    /// So many rounds of rows and turns, of which some are killed; then all settles, as far as it does.
    pub fn run(&mut self, rounds: usize) {
        for round in 0..rounds {
            for _ in 0..20 {
                self.rows.push(self.random.usize(..LANES));
            }
            for turn in 0..3 {
                let killed = turn == 1 && round % 2 == 0;
                self.kills += usize::from(killed);
                self.turn(killed);
            }
        }
        self.calm = true;
        for _ in 0..300 {
            self.turn(false);
        }
    }

    pub fn committed(&self) -> Committed {
        self.rows.iter().enumerate().map(|(row, lane)| (number(row), name(*lane))).collect()
    }

    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    fn send(&mut self, row: usize) -> Outcome {
        let outcome = match self.random.u8(..100) {
            _ if self.calm => Outcome::Accepted,
            0..3 => Outcome::Unclear,
            3 => Outcome::Hung,
            4..9 => Outcome::Refused,
            _ => Outcome::Accepted,
        };
        let lane = name(self.rows[row]);
        self.arrivals.push(Arrival { lane, number: number(row), outcome, replayed: false });
        outcome
    }

    /// Reserves rows and sends them; when it is killed, the next one lists all of them.
    fn turn(&mut self, killed: bool) {
        let mut queues = self.reserve();
        let reserved: Vec<usize> = queues.values().flatten().copied().collect();
        let (mut passed, mut blocked) = (BTreeSet::new(), BTreeSet::new());
        let mut flying: Vec<usize> = Vec::new();
        let is_killed_at = killed.then(|| self.random.usize(..reserved.len().max(1)));
        for ended in 0.. {
            while flying.len() < IN_FLIGHT
                && let Some(row) = self.next(&mut queues, &flying, &blocked)
            {
                flying.push(row);
            }
            if is_killed_at == Some(ended) {
                return self.kill(flying, reserved);
            }
            if flying.is_empty() {
                break;
            }
            let row = flying.swap_remove(self.random.usize(..flying.len()));
            match self.send(row) {
                Outcome::Accepted => {
                    passed.insert(row);
                }
                Outcome::Hung | Outcome::Unclear => {
                    blocked.insert(self.rows[row]);
                    self.unclear(row, &mut passed);
                }
                Outcome::Refused => {
                    blocked.insert(self.rows[row]);
                }
            }
        }
        if self.plant == Plant::ListsAll {
            self.listed.extend(reserved.iter().copied().map(number));
        }
        self.pass(passed);
    }

    /// A row of each lane before a second of any.
    fn reserve(&mut self) -> BTreeMap<usize, VecDeque<usize>> {
        let mut all = BTreeMap::<usize, VecDeque<usize>>::new();
        for row in (self.position..self.rows.len()).filter(|row| !self.ahead.contains(row)) {
            all.entry(self.rows[row]).or_default().push_back(row);
        }
        let mut queues = BTreeMap::<usize, VecDeque<usize>>::new();
        for _ in 0..IN_FLIGHT * RESERVED {
            let shortest = |lane: &usize| queues.get(lane).map_or(0, VecDeque::len);
            let open = all.iter().filter(|(_, rows)| !rows.is_empty()).map(|(lane, _)| *lane);
            let Some(lane) = open.min_by_key(shortest) else { break };
            if let Some(row) = all.get_mut(&lane).and_then(VecDeque::pop_front) {
                queues.entry(lane).or_default().push_back(row);
            }
        }
        queues
    }

    fn next(
        &self,
        queues: &mut BTreeMap<usize, VecDeque<usize>>,
        flying: &[usize],
        blocked: &BTreeSet<usize>,
    ) -> Option<usize> {
        let may_be_sent = |lane: &usize| {
            flying.iter().all(|row| self.rows[*row] != *lane)
                && (!blocked.contains(lane) || self.plant == Plant::LaneOvertakesItself)
        };
        let firsts = queues.iter().filter(|(lane, _)| may_be_sent(lane));
        let (_, lane) = firsts.filter_map(|(lane, rows)| Some((*rows.front()?, *lane))).min()?;
        queues.get_mut(&lane)?.pop_front()
    }

    fn unclear(&mut self, row: usize, passed: &mut BTreeSet<usize>) {
        if self.plant == Plant::SendsUnclearAgain {
            return;
        }
        passed.insert(row);
        if self.plant != Plant::ListsNothingUnclear {
            self.listed.insert(number(row));
        }
    }

    /// What was on its way may have come, and what was reserved is passed.
    fn kill(&mut self, flying: Vec<usize>, reserved: Vec<usize>) {
        for row in flying {
            if self.random.bool() {
                self.send(row);
            }
        }
        if self.plant == Plant::ForgetsReservation {
            return;
        }
        if self.plant != Plant::ListsNoReservation {
            self.listed.extend(reserved.iter().copied().map(number));
        }
        self.pass(reserved.into_iter().collect());
    }

    fn pass(&mut self, rows: BTreeSet<usize>) {
        self.ahead.extend(rows);
        while self.ahead.remove(&self.position) {
            self.position += 1;
        }
        if self.plant == Plant::ForgetsAhead {
            self.ahead.clear();
        }
    }
}
