//! The delivery checker: what was committed against what arrived.
//!
//! Pure, and told nothing by the relay: the rows come from the table itself, the deliveries from whoever received them.
//! Every fault of a relay shows as one of: a row that never arrived, a delivery that nobody committed, a first delivery
//! below an earlier one of its stream, a row delivered again, a replay with holes. A stream is what keeps order: a
//! partition of Kafka, or all messages of a relay.

use std::collections::{BTreeMap, HashMap, HashSet};

use outbox_relay::position::Timestamp;

/// The committed rows, in their order.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    rows: Vec<(String, Timestamp)>,
    ranks: HashMap<String, usize>,
}

/// Something that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The row's id, as the message says.
    pub id: String,
    /// The row's `created_at`, when the message says it.
    pub created_at: Option<Timestamp>,
}

/// What the receiver cannot have seen, because its channel lost it: no fault of the relay, but no proof either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The stream.
    pub stream: i32,
    /// The offset that should have come.
    pub expected: i64,
    /// The offset that came.
    pub found: i64,
}

/// A first delivery below an earlier first delivery of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disorder {
    /// The stream.
    pub stream: i32,
    /// The late one.
    pub id: String,
    /// The highest of those that were delivered before it.
    pub after: String,
}

/// A replay that left out rows delivered before, or broke off before it came to the first new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The stream.
    pub stream: i32,
    /// The row that should have been repeated.
    pub expected: String,
    /// What came in its place.
    pub found: String,
}

/// The findings about one sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many messages arrived.
    pub deliveries: usize,
    /// How many different committed rows arrived.
    pub distinct: usize,
    /// Committed, never delivered.
    pub lost: Vec<String>,
    /// Delivered, not committed under this id and `created_at`.
    pub phantom: Vec<String>,
    /// First deliveries out of order.
    pub out_of_order: Vec<Disorder>,
    /// Replays that are not contiguous and in order.
    pub holes: Vec<Hole>,
    /// Ids that came in more than one stream.
    pub strayed: Vec<String>,
    /// Copied from the receiver.
    pub gaps: Vec<Gap>,
}

/// What follows for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything arrived, in order, and nothing twice unless something was killed.
    Pass,
    /// At least one promise was broken.
    Fail,
    /// The receiver missed something itself, or nothing was committed: nothing is proven either way.
    Undecided,
}

impl Committed {
    /// From the rows as PostgreSQL orders them: `ORDER BY created_at, id`. This program never orders ids itself.
    ///
    /// # Panics
    /// When an id comes twice: such a ground truth decides nothing.
    #[must_use]
    pub fn in_order(rows: Vec<(String, Timestamp)>) -> Self {
        let ranks: HashMap<String, usize> = rows.iter().enumerate().map(|(rank, (id, _))| (id.clone(), rank)).collect();
        assert_eq!(ranks.len(), rows.len(), "committed ids are unique");
        Self { rows, ranks }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// When the row was created.
    #[must_use]
    pub fn created_at(&self, id: &str) -> Option<Timestamp> {
        self.ranks.get(id).map(|&rank| self.rows[rank].1)
    }

    /// The ids above `from`, up to and including `to`; `from` none is the beginning. None when one is not committed.
    #[must_use]
    pub fn between(&self, from: Option<&str>, to: &str) -> Option<HashSet<&str>> {
        let first = from.map_or(Some(0), |id| self.ranks.get(id).map(|rank| rank + 1))?;
        let rows = self.rows.get(first..=*self.ranks.get(to)?)?;
        Some(rows.iter().map(|(id, _)| id.as_str()).collect())
    }

    fn rank(&self, delivery: &Delivery) -> Option<usize> {
        let rank = *self.ranks.get(&delivery.id)?;
        delivery.created_at.is_none_or(|at| at == self.rows[rank].1).then_some(rank)
    }

    fn id(&self, rank: usize) -> String {
        self.rows[rank].0.clone()
    }
}

/// Compares the committed rows with the deliveries of each stream in the order of their arrival.
#[must_use]
pub fn check(committed: &Committed, streams: &BTreeMap<i32, Vec<Delivery>>, gaps: &[Gap]) -> Report {
    let mut report = Report { gaps: gaps.to_vec(), ..Report::default() };
    let mut arrived = vec![false; committed.len()];
    let mut strayed = HashSet::new();
    for (&stream, deliveries) in streams {
        report.deliveries += deliveries.len();
        for rank in check_stream(committed, stream, deliveries, &mut report) {
            if std::mem::replace(&mut arrived[rank], true) {
                strayed.insert(rank);
            }
        }
    }
    report.distinct = arrived.iter().filter(|arrived| **arrived).count();
    report.lost = (0..committed.len()).filter(|&rank| !arrived[rank]).map(|rank| committed.id(rank)).collect();
    report.strayed = strayed.into_iter().map(|rank| committed.id(rank)).collect();
    report.strayed.sort();
    report
}

/// Adds the findings about one stream and returns the ranks of its first deliveries, in order of arrival.
fn check_stream(committed: &Committed, stream: i32, deliveries: &[Delivery], report: &mut Report) -> Vec<usize> {
    let mut firsts: Vec<usize> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut highest: Option<usize> = None;
    // Where the next delivery belongs when it carries on; a smaller place begins another replay.
    let mut next = 0;
    for delivery in deliveries {
        let Some(rank) = committed.rank(delivery) else {
            report.phantom.push(delivery.id.clone());
            continue;
        };
        let place = *places.entry(rank).or_insert(firsts.len());
        if place > next {
            let (expected, found) = (committed.id(firsts[next]), delivery.id.clone());
            report.holes.push(Hole { stream, expected, found });
        }
        next = place + 1;
        if place == firsts.len() {
            firsts.push(rank);
            match highest {
                Some(highest) if rank < highest => {
                    let after = committed.id(highest);
                    report.out_of_order.push(Disorder { stream, id: delivery.id.clone(), after });
                }
                Some(_) | None => highest = Some(rank),
            }
        }
    }
    firsts
}

impl Report {
    /// Deliveries that brought nothing new.
    #[must_use]
    pub fn duplicates(&self) -> usize {
        self.deliveries - self.distinct
    }

    /// Nothing lost, nothing invented, first deliveries in order; says nothing about duplicates.
    #[must_use]
    pub fn is_faithful(&self) -> bool {
        self.lost.is_empty() && self.phantom.is_empty() && self.out_of_order.is_empty()
    }
}

/// The verdict over all sinks of a run; `killed` says whether anything was killed in it.
#[must_use]
pub fn verdict(committed: &Committed, reports: &[&Report], killed: bool) -> Verdict {
    if committed.is_empty() || reports.iter().any(|report| !report.gaps.is_empty()) {
        return Verdict::Undecided;
    }
    let kept = |report: &&Report| report.is_faithful() && (killed || report.duplicates() == 0);
    if reports.iter().all(kept) { Verdict::Pass } else { Verdict::Fail }
}

impl Verdict {
    /// Of two findings about one run: a broken promise outweighs a missing proof, and that a pass.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fail, _) | (_, Self::Fail) => Self::Fail,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Pass, Self::Pass) => Self::Pass,
        }
    }

    /// The word in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }

    /// What the process ends with.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Undecided => 3,
        }
    }
}

#[cfg(test)]
mod tests;
