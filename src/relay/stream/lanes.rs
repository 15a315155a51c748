//! Which rows of a turn may be on their way together (`[relay.turn] in_flight`). Pure.
//!
//! Promise: of each lane at most one row is on its way, in the order of the rows; behind one that was not accepted none of its lane is
//! sent. The acknowledged prefix is of all rows, whatever their lanes.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::relay::setup::lane_memory::Lane;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct LaneQueues {
    rows: Vec<Row>,
    numbers: HashMap<Lane, usize>,
    queues: Vec<Queue>,
    /// First rows of lanes of which none is on its way.
    ready: BTreeSet<usize>,
    prefix: usize,
    acknowledged: usize,
    /// Rows of lanes that are not blocked.
    open: usize,
    /// No others may be sent; none where all may.
    reserved: Option<HashSet<usize>>,
}

#[derive(Debug)]
struct Row {
    lane: usize,
    is_acknowledged: bool,
}

#[derive(Debug)]
struct Queue {
    lane: Lane,
    waiting: VecDeque<usize>,
    is_busy: bool,
    is_blocked: bool,
}

impl LaneQueues {
    /// One more row, behind all others. `is_blocked` is asked when it is the first of its lane: whether the lane waits.
    pub(in crate::relay) fn push(&mut self, lane: Lane, is_blocked: impl FnOnce(&Lane) -> bool) {
        let row = self.rows.len();
        let number = match self.numbers.get(&lane) {
            Some(number) => *number,
            None => {
                let is_blocked = is_blocked(&lane);
                self.numbers.insert(lane.clone(), self.queues.len());
                self.queues.push(Queue { lane, waiting: VecDeque::new(), is_busy: false, is_blocked });
                self.queues.len() - 1
            }
        };
        self.rows.push(Row { lane: number, is_acknowledged: false });
        let queue = &mut self.queues[number];
        queue.waiting.push_back(row);
        self.open += usize::from(!queue.is_blocked);
        self.offer(number);
    }

    /// The next row that may be sent, of a wanted lane; it is on its way then.
    pub(in crate::relay) fn next(&mut self, is_wanted: impl Fn(&Lane) -> bool) -> Option<usize> {
        let row = self.ready.iter().copied().find(|row| self.may_be_sent(*row) && is_wanted(self.lane(*row)))?;
        self.ready.remove(&row);
        let queue = &mut self.queues[self.rows[row].lane];
        queue.waiting.pop_front();
        queue.is_busy = true;
        Some(row)
    }

    /// Whether a row of a wanted lane may be sent.
    pub(in crate::relay) fn has_next(&self, is_wanted: impl Fn(&Lane) -> bool) -> bool {
        self.ready.iter().any(|row| self.may_be_sent(*row) && is_wanted(self.lane(*row)))
    }

    fn may_be_sent(&self, row: usize) -> bool {
        self.reserved.as_ref().is_none_or(|reserved| reserved.contains(&row))
    }

    /// From now on only so many rows may be sent, of wanted lanes that do not wait: the first of each, then the second of each, so that a long
    /// lane takes no place of another. Which they are, in order.
    pub(in crate::relay) fn reserve(&mut self, most: usize, is_wanted: impl Fn(&Lane) -> bool) -> Vec<usize> {
        let queues = self.queues.iter().filter(|queue| !queue.is_blocked && is_wanted(&queue.lane));
        let queues: Vec<&VecDeque<usize>> = queues.map(|queue| &queue.waiting).collect();
        let rounds = queues.iter().map(|waiting| waiting.len()).max().unwrap_or(0).min(most);
        let rows = (0..rounds).flat_map(|round| queues.iter().filter_map(move |waiting| waiting.get(round)));
        let mut rows: Vec<usize> = rows.take(most).copied().collect();
        rows.sort_unstable();
        self.reserved = Some(rows.iter().copied().collect());
        rows
    }

    /// Whether the lane of a row waits for its next attempt.
    pub(in crate::relay) fn is_blocked(&self, row: usize) -> bool {
        self.queues[self.rows[row].lane].is_blocked
    }

    /// A row on its way was accepted: the next of its lane may follow.
    pub(in crate::relay) fn acknowledged(&mut self, row: usize) {
        self.acknowledged += 1;
        self.pass(row);
        let lane = self.rows[row].lane;
        self.queues[lane].is_busy = false;
        self.offer(lane);
    }

    /// A row on its way was not accepted: nothing of its lane follows.
    pub(in crate::relay) fn failed(&mut self, row: usize) {
        let queue = &mut self.queues[self.rows[row].lane];
        (queue.is_busy, queue.is_blocked) = (false, true);
    }

    /// A row on its way was accepted or not, which is not known: it is passed as an acknowledged one, and nothing of its lane follows.
    pub(in crate::relay) fn doubtful(&mut self, row: usize) {
        self.pass(row);
        self.failed(row);
    }

    fn pass(&mut self, row: usize) {
        self.rows[row].is_acknowledged = true;
        while self.rows.get(self.prefix).is_some_and(|row| row.is_acknowledged) {
            self.prefix += 1;
        }
    }

    /// Whether a row was acknowledged, or is passed as if it were.
    pub(in crate::relay) fn is_passed(&self, row: usize) -> bool {
        self.rows[row].is_acknowledged
    }

    fn offer(&mut self, lane: usize) {
        let queue = &self.queues[lane];
        if let Some(first) = queue.waiting.front().filter(|_| !queue.is_busy && !queue.is_blocked) {
            self.ready.insert(*first);
        }
    }

    /// The lane of a row.
    pub(in crate::relay) fn lane(&self, row: usize) -> &Lane {
        &self.queues[self.rows[row].lane].lane
    }

    /// How many rows there are.
    pub(in crate::relay) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many rows were pushed of lanes that did not wait.
    pub(in crate::relay) fn open(&self) -> usize {
        self.open
    }

    /// How many lanes have rows that may be sent, now or after others of theirs.
    pub(in crate::relay) fn sendable(&self) -> usize {
        self.queues.iter().filter(|queue| !queue.is_blocked && !queue.waiting.is_empty()).count()
    }

    /// Whether a row of the lane was pushed.
    pub(in crate::relay) fn knows(&self, lane: &Lane) -> bool {
        self.numbers.contains_key(lane)
    }

    /// How many rows were acknowledged, wherever they stand.
    pub(in crate::relay) fn all_acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// How many leading rows were acknowledged.
    pub(in crate::relay) fn prefix(&self) -> usize {
        self.prefix
    }

    /// The rows behind the prefix that were acknowledged.
    pub(in crate::relay) fn beyond(&self) -> impl Iterator<Item = usize> {
        let behind = self.rows.iter().enumerate().skip(self.prefix);
        behind.filter(|(_, row)| row.is_acknowledged).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(number: usize) -> Lane {
        (number > 0).then(|| number.to_string())
    }

    /// Ten rows of one lane, then one of another.
    #[test]
    fn reservation_has_a_row_of_each_lane_before_a_second_of_any() {
        let mut lanes = LaneQueues::default();
        for of in [[1; 10].as_slice(), &[2], &[3]].concat() {
            lanes.push(lane(of), |lane| lane.as_deref() == Some("3"));
        }
        assert_eq!(lanes.reserve(4, |_| true), [0, 1, 2, 10], "of the third none: it waits");
        let mut sent = Vec::new();
        while let Some(row) = lanes.next(|_| true) {
            sent.push(row);
            if row == 1 {
                lanes.doubtful(row);
            } else {
                lanes.acknowledged(row);
            }
        }
        assert_eq!(sent, [0, 1, 10], "behind one without a clear answer none of its lane is sent");
        assert_eq!(lanes.prefix(), 2);
        assert!(lanes.is_passed(1) && !lanes.is_passed(2), "the third comes again");
    }

    proptest! {
        /// Whatever ends in whatever order: one row a lane is on its way, in the order of rows, none behind one that failed.
        #[test]
        fn lanes_keep_their_order_and_others_do_not_wait(
            lanes_of in prop::collection::vec(0_usize..5, 1..60),
            waits in prop::collection::hash_set(0_usize..5, 0..3),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), 0..400),
            in_flight in 1_usize..8,
        ) {
            let mut lanes = LaneQueues::default();
            let mut pushed = lanes_of.iter();
            let (mut flying, mut sent): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            let (mut acknowledged, mut failed) = (BTreeSet::new(), BTreeSet::new());
            for (which, fate) in steps {
                for of in pushed.by_ref().take(3) {
                    lanes.push(lane(*of), |_| waits.contains(of));
                }
                while flying.len() < in_flight && let Some(row) = lanes.next(|_| true) {
                    prop_assert!(flying.iter().all(|other| lanes_of[*other] != lanes_of[row]), "two of one lane");
                    prop_assert!(sent.iter().all(|other| lanes_of[*other] != lanes_of[row] || *other < row), "overtaken");
                    prop_assert!(failed.iter().all(|other: &usize| lanes_of[*other] != lanes_of[row]), "behind a failed one");
                    prop_assert!(!waits.contains(&lanes_of[row]), "of a lane that waits");
                    sent.push(row);
                    flying.push(row);
                }
                // Several are on their way at a time: not every step ends one.
                if !flying.is_empty() && fate < 6 {
                    let row = flying.swap_remove(which.index(flying.len()));
                    if fate == 0 {
                        lanes.failed(row);
                        failed.insert(row);
                    } else {
                        lanes.acknowledged(row);
                        acknowledged.insert(row);
                    }
                }
                let prefix = (0..lanes.rows()).take_while(|row| acknowledged.contains(row)).count();
                prop_assert_eq!(lanes.prefix(), prefix);
                prop_assert_eq!(lanes.beyond().collect::<Vec<_>>(), acknowledged.iter().copied().filter(|row| *row >= prefix).collect::<Vec<_>>());
                prop_assert_eq!(lanes.all_acknowledged(), acknowledged.len());
                // A lane that is neither busy, blocked nor empty can always be sent.
                let stands_ready = (0..lanes.rows()).any(|row| {
                    let of = lanes_of[row];
                    !sent.contains(&row) && !waits.contains(&of)
                        && flying.iter().all(|other| lanes_of[*other] != of)
                        && failed.iter().all(|other| lanes_of[*other] != of)
                });
                prop_assert_eq!(lanes.has_next(|_| true), stands_ready);
            }
        }
    }
}
