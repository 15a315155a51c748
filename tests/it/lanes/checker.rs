//! What convicts a relay with lanes: which message came when, against what was committed and what was done to the replicas. It
//! knows nothing of the relay. Pure; `planted.rs` has it convict a model of each fault.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use outbox_testkit::order::{self, Came};

/// What the receiver made of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// Accepted, and not answered in time: the relay cannot know.
    Hung,
    /// Not accepted, by an answer that does not say so clearly.
    Unclear,
    /// Not accepted, and the relay knows.
    Refused,
}

impl Outcome {
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::Hung)
    }
}

/// A message, written down when it came.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub lane: String,
    /// Of its row, in the order of the lane.
    pub number: i64,
    pub outcome: Outcome,
    /// Marked as sent again by an operator.
    pub replayed: bool,
}

/// The lane of each row.
pub type Committed = BTreeMap<i64, String>;

/// What a relay is convicted of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A row was never accepted, and stands in no list.
    Lost,
    /// A message of no row.
    Phantom,
    /// A message came while an earlier one of its lane was open, or behind a later one.
    Overtaken,
    /// More messages came again than faults explain.
    Repeated,
    /// A message came again that may have been accepted (`at_most_once`).
    Twice,
    /// More rows are listed as unknown than faults explain.
    Listed,
}

/// What faults explain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// Messages that came again.
    pub repeated: usize,
    /// The same, of those that an operator has had sent again.
    pub replayed: usize,
    /// Rows that are listed as unknown.
    pub listed: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    found: Vec<(Fault, String)>,
    /// Messages that came again.
    pub repeated: usize,
    /// The same, of those that an operator has had sent again.
    pub replayed: usize,
}

impl Verdict {
    pub fn faults(&self) -> BTreeSet<Fault> {
        self.found.iter().map(|(fault, _)| *fault).collect()
    }

    /// # Panics
    /// When there is any fault, with the first of each.
    pub fn acquits(&self, seed: u64) {
        let mut first: BTreeMap<Fault, &str> = BTreeMap::new();
        for (fault, what) in &self.found {
            first.entry(*fault).or_insert(what);
        }
        assert!(first.is_empty(), "seed {seed}, {} findings, the first of each: {first:#?}", self.found.len());
    }

    fn convict(&mut self, fault: Fault, what: String) {
        self.found.push((fault, what));
    }

    fn phantoms(&mut self, committed: &Committed, arrivals: &[Arrival]) {
        let is_none = |arrival: &&Arrival| committed.get(&arrival.number) != Some(&arrival.lane);
        for Arrival { lane, number, .. } in arrivals.iter().filter(is_none) {
            self.convict(Fault::Phantom, format!("{number} of {lane} is no row"));
        }
    }

    fn lost(&mut self, committed: &Committed, is_known: impl Fn(i64) -> bool) {
        for (number, lane) in committed.iter().filter(|(number, _)| !is_known(**number)) {
            self.convict(Fault::Lost, format!("{number} of {lane} never came, and is not listed"));
        }
    }
}

/// Each message that came while an earlier one of its lane was open, in words.
pub fn overtakings(committed: &Committed, arrivals: &[Arrival]) -> Vec<String> {
    let rows = committed.iter().map(|(number, lane)| (*number, lane.as_str()));
    let came = arrivals.iter().map(|Arrival { lane, number, outcome, .. }| Came {
        lane,
        number: *number,
        accepted: outcome.is_accepted(),
    });
    order::overtakings(rows, came).iter().map(ToString::to_string).collect()
}

/// The rows of which a message came.
pub fn arrived(arrivals: &[Arrival]) -> Committed {
    arrivals.iter().map(|arrival| (arrival.number, arrival.lane.clone())).collect()
}

/// Of a relay that must have each row accepted: in the order of its lane, and once, unless faults explain more.
pub fn at_least_once(committed: &Committed, arrivals: &[Arrival], allowed: Allowed) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.phantoms(committed, arrivals);
    for what in overtakings(committed, arrivals) {
        verdict.convict(Fault::Overtaken, what);
    }
    let (mut accepted, mut hung) = (BTreeSet::new(), 0);
    for arrival in arrivals.iter().filter(|arrival| arrival.outcome.is_accepted()) {
        hung += usize::from(arrival.outcome == Outcome::Hung);
        let again = usize::from(!accepted.insert(arrival.number));
        if arrival.replayed {
            verdict.replayed += again;
        } else {
            verdict.repeated += again;
        }
    }
    verdict.lost(committed, |number| accepted.contains(&number));
    for (again, most, what) in [
        (verdict.repeated, allowed.repeated + hung, "came again"),
        (verdict.replayed, allowed.replayed + hung, "were sent again twice"),
    ] {
        if again > most {
            verdict.convict(Fault::Repeated, format!("{again} {what}, faults explain {most}"));
        }
    }
    verdict
}

/// Of a relay that must send no row twice: of each lane no row comes behind a later one, and what may be missing is listed.
pub fn at_most_once(committed: &Committed, arrivals: &[Arrival], listed: &BTreeSet<i64>, allowed: Allowed) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.phantoms(committed, arrivals);
    let (mut may_be_accepted, mut accepted, mut last) = (BTreeSet::new(), BTreeSet::new(), HashMap::<&str, i64>::new());
    let mut unclear = 0;
    for Arrival { lane, number, outcome, .. } in arrivals {
        if may_be_accepted.contains(number) {
            verdict.convict(Fault::Twice, format!("{number} of {lane} came again"));
        }
        let highest = last.entry(lane).or_insert(*number);
        if *number < *highest {
            verdict.convict(Fault::Overtaken, format!("{number} of {lane} came behind {highest}"));
        }
        *highest = (*highest).max(*number);
        if *outcome != Outcome::Refused {
            may_be_accepted.insert(*number);
        }
        if outcome.is_accepted() {
            accepted.insert(*number);
        }
        unclear += usize::from(matches!(outcome, Outcome::Hung | Outcome::Unclear));
    }
    verdict.lost(committed, |number| accepted.contains(&number) || listed.contains(&number));
    for number in listed.iter().filter(|number| !committed.contains_key(number)) {
        verdict.convict(Fault::Phantom, format!("{number} is listed and is no row"));
    }
    let most = allowed.listed + unclear;
    if listed.len() > most {
        verdict.convict(Fault::Listed, format!("{} are listed, faults explain {most}", listed.len()));
    }
    verdict
}
