//! A relay with lanes and parked keys as a model of a few lines, which can have one fault at a time: what the checker of the
//! storms must convict. Without a fault it is acquitted.

pub mod once;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::checker::{Arrival, Committed, Outcome};

/// How many messages may be on their way.
pub const IN_FLIGHT: usize = 6;
const LANES: usize = 12;
/// How many rows are read beyond the position.
const WINDOW: usize = 80;
/// How many rows of released keys a turn sends.
const RELEASED: usize = 3;
/// How many keys may be parked.
const KEYS: usize = 3;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// The next row of a lane is sent although the one before it was not accepted.
    LaneOvertakesItself,
    /// Two rows of a lane are on their way at a time.
    TwoOfALane,
    /// What was accepted beyond the position is forgotten by the next turn.
    ForgetsAhead,
    /// A row counts as accepted beyond the position before it is.
    RecordsBeforeItIsSent,
    /// The position passes a row that was not accepted.
    PassesAGap,
    /// New rows of a parked key are sent.
    NewRowPassesParked,
    /// New rows of a released key are sent while older ones of it are left.
    NewRowPassesReleased,
    /// A released key is forgotten with its other rows when the first was sent.
    FreesKeyTooEarly,
    /// Rows of a released key are sent newest first.
    ReleasesBackward,
    /// A row of a parked key is passed and not written down.
    ForgetsParked,
    /// Rows of released keys are sent and stay.
    KeepsReleased,
}

struct Row {
    lane: usize,
    /// It is refused for good, until the receiver is cured.
    bad: bool,
}

/// A key that is parked: the rows of its lane that wait, the refused one first, unless it is released.
struct Key {
    waiting: VecDeque<usize>,
    released: bool,
}

/// See the module.
pub struct Model {
    plant: Plant,
    random: fastrand::Rng,
    rows: Vec<Row>,
    /// So many rows are passed.
    position: usize,
    ahead: BTreeSet<usize>,
    keys: BTreeMap<usize, Key>,
    arrivals: Vec<Arrival>,
    /// Nothing is refused for good.
    cured: bool,
    /// Nothing fails.
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
            keys: BTreeMap::new(),
            arrivals: Vec::new(),
            cured: false,
            calm: false,
            kills: 0,
        }
    }

    /// So many rounds of rows, turns, redrives, and kills where there are to be some; then all settles, as far as it does.
    pub fn run(&mut self, rounds: usize, with_kills: bool) {
        for round in 0..rounds {
            for _ in 0..30 {
                self.rows.push(Row { lane: self.random.usize(..LANES), bad: self.random.u8(..50) == 0 });
            }
            self.cured = round % 3 == 2;
            if round % 4 == 3 {
                self.redrive();
            }
            for turn in 0..3 {
                let killed = with_kills && turn == 1 && round % 2 == 0;
                self.kills += usize::from(killed);
                self.turn(killed);
            }
        }
        (self.cured, self.calm) = (true, true);
        for _ in 0..500 {
            self.redrive();
            self.turn(false);
        }
    }

    pub fn committed(&self) -> Committed {
        (0..self.rows.len()).map(|row| (number(row), name(self.rows[row].lane))).collect()
    }

    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// A message comes to the receiver.
    fn send(&mut self, row: usize, replayed: bool) -> Outcome {
        let Row { lane, bad } = self.rows[row];
        let outcome = match self.random.u8(..100) {
            _ if bad && !self.cured => Outcome::Refused,
            _ if self.calm => Outcome::Accepted,
            0..8 => Outcome::Unclear,
            8..11 => Outcome::Refused,
            11 => Outcome::Hung,
            _ => Outcome::Accepted,
        };
        self.arrivals.push(Arrival { lane: name(lane), number: number(row), outcome, replayed });
        outcome
    }

    /// An operator has the refused messages sent again; those that are accepted release their keys.
    fn redrive(&mut self) {
        let parked = self.keys.iter().filter(|(_, key)| !key.released);
        let heads = parked.filter_map(|(lane, key)| Some((*lane, *key.waiting.front()?)));
        for (lane, head) in heads.collect::<Vec<_>>() {
            if self.send(head, true) == Outcome::Accepted
                && let Some(key) = self.keys.get_mut(&lane)
            {
                key.waiting.pop_front();
                key.released = true;
            }
        }
    }

    /// A turn; when it is killed, what it has not recorded until then is lost.
    fn turn(&mut self, killed: bool) {
        self.send_released();
        let (mut queues, withheld) = self.read();
        let (mut flying, mut busy) = (Vec::<usize>::new(), Vec::<usize>::new());
        let (mut blocked, mut refused) = (BTreeSet::new(), BTreeSet::new());
        loop {
            while flying.len() < IN_FLIGHT
                && let Some(row) = self.next(&mut queues, &busy, &blocked)
            {
                busy.push(self.rows[row].lane);
                flying.push(row);
                if self.plant == Plant::RecordsBeforeItIsSent {
                    self.ahead.insert(row);
                }
            }
            if killed && self.random.u8(..10) == 0 {
                return self.kill(flying);
            }
            if flying.is_empty() {
                break;
            }
            let row = flying.swap_remove(self.random.usize(..flying.len()));
            let lane = self.rows[row].lane;
            busy.swap_remove(busy.iter().position(|other| *other == lane).expect("it was on its way"));
            match self.send(row, false) {
                // Recorded beside the turn.
                Outcome::Accepted => {
                    self.ahead.insert(row);
                }
                Outcome::Hung | Outcome::Unclear => {
                    blocked.insert(lane);
                }
                Outcome::Refused => {
                    blocked.insert(lane);
                    refused.insert(row);
                }
            }
        }
        self.advance(withheld, &refused);
    }

    /// The rows beyond the position by lane, and those of parked keys, which are withheld.
    fn read(&mut self) -> (BTreeMap<usize, VecDeque<usize>>, BTreeSet<usize>) {
        let (mut queues, mut withheld) = (BTreeMap::<usize, VecDeque<usize>>::new(), BTreeSet::new());
        for row in self.position..self.rows.len().min(self.position + WINDOW) {
            let lane = self.rows[row].lane;
            let is_held = self.keys.get(&lane).is_some_and(|key| match self.plant {
                Plant::NewRowPassesParked => key.released,
                Plant::NewRowPassesReleased => !key.released,
                _ => true,
            });
            if self.ahead.contains(&row) && self.plant != Plant::ForgetsAhead {
                continue;
            }
            if is_held {
                withheld.insert(row);
            } else {
                queues.entry(lane).or_default().push_back(row);
            }
        }
        (queues, withheld)
    }

    /// The first row, of a lane that may be sent.
    fn next(
        &self,
        queues: &mut BTreeMap<usize, VecDeque<usize>>,
        busy: &[usize],
        blocked: &BTreeSet<usize>,
    ) -> Option<usize> {
        let may_be_sent = |lane: &usize| {
            let waits = busy.contains(lane) && self.plant != Plant::TwoOfALane;
            !waits && (!blocked.contains(lane) || self.plant == Plant::LaneOvertakesItself)
        };
        let firsts = queues.iter().filter(|(lane, _)| may_be_sent(lane));
        let (_, lane) = firsts.filter_map(|(lane, rows)| Some((*rows.front()?, *lane))).min()?;
        queues.get_mut(&lane)?.pop_front()
    }

    /// What was on its way may have come.
    fn kill(&mut self, flying: Vec<usize>) {
        for row in flying {
            if self.random.bool() {
                self.send(row, false);
            }
        }
    }

    /// The position moves over what was accepted without a gap, and over rows that are written down.
    fn advance(&mut self, withheld: BTreeSet<usize>, refused: &BTreeSet<usize>) {
        if self.plant == Plant::PassesAGap {
            self.position = self.ahead.last().map_or(self.position, |last| self.position.max(last + 1));
            return;
        }
        while self.position < self.rows.len() {
            let (row, lane) = (self.position, self.rows[self.position].lane);
            if withheld.contains(&row) {
                let is_written = self.plant != Plant::ForgetsParked || self.random.u8(..4) > 0;
                if let Some(key) = self.keys.get_mut(&lane).filter(|_| is_written) {
                    key.waiting.push_back(row);
                }
            } else if !self.ahead.remove(&row) {
                // Without room for its key it is retried.
                if refused.contains(&row) && self.keys.len() < KEYS && !self.keys.contains_key(&lane) {
                    self.keys.insert(lane, Key { waiting: [row].into(), released: false });
                    self.position += 1;
                }
                return;
            }
            self.position += 1;
        }
    }

    /// The oldest rows of released keys, before any new one.
    fn send_released(&mut self) {
        for _ in 0..RELEASED {
            self.keys.retain(|_, key| !key.released || !key.waiting.is_empty());
            let released = self.keys.iter().filter(|(_, key)| key.released);
            let backward = self.plant == Plant::ReleasesBackward;
            let of = |key: &Key| if backward { key.waiting.back().copied() } else { key.waiting.front().copied() };
            let Some((row, lane)) = released.filter_map(|(lane, key)| Some((of(key)?, *lane))).min() else { return };
            if self.send(row, true) != Outcome::Accepted {
                return;
            }
            let plant = self.plant;
            match plant {
                Plant::FreesKeyTooEarly => {
                    self.keys.remove(&lane);
                }
                Plant::KeepsReleased if self.random.bool() => {}
                _ => {
                    let Some(key) = self.keys.get_mut(&lane) else { return };
                    let _sent = if backward { key.waiting.pop_back() } else { key.waiting.pop_front() };
                }
            }
        }
    }
}

/// Rows have numbers from 1 on.
fn number(row: usize) -> i64 {
    i64::try_from(row).expect("a few") + 1
}

fn name(lane: usize) -> String {
    format!("k{lane}")
}
