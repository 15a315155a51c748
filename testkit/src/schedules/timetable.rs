//! What is written, and when each of it is to happen, by counting.

use std::collections::BTreeMap;
use std::time::Duration;

use super::judge::{Care, Expected, Occurrence};
use super::{HANGING, HEALTHY};
use crate::Options;
use outbox_relay::position::Timestamp;

/// Shorter, the story has no room.
const SHORTEST: u64 = 12;
/// Long enough for all replicas to plan what is written.
const HEAD_START: Duration = Duration::from_secs(3);
/// Edits and kills of all are made between two instants, so that nobody can argue on which side one lies.
const BETWEEN: Duration = Duration::from_millis(500);
/// What a rule's `every` is otherwise counted in.
const SECOND: Duration = Duration::from_secs(1);

/// When what happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    /// The first instant of all rules.
    pub(super) first: Timestamp,
    /// When the last replica is killed and none is started.
    pub(super) dark: Timestamp,
    /// The first of the three instants that nobody is there for.
    pub(super) missed: Timestamp,
    /// When replicas are started again.
    pub(super) light: Timestamp,
    /// No instant lies behind this.
    pub(super) last: Timestamp,
}

/// A schedule as it is written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) tenant: &'static str,
    pub(super) name: String,
    /// Seconds between its instants; none: only one.
    pub(super) every: Option<u64>,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) missed: &'static str,
    pub(super) overlap: &'static str,
    pub(super) on_interrupted: &'static str,
    pub(super) timeout: &'static str,
}

/// What the application does to its schedules during the play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edit {
    /// A date in an hour becomes one in seconds.
    Redate,
    /// A schedule makes no occurrences any more.
    Pause,
    /// Every second becomes every three seconds.
    Rerule,
    /// A schedule is deleted.
    Delete,
    /// What was paused goes on.
    Resume,
}

/// The database's clock when it did what was asked.
pub(super) type Done = BTreeMap<Edit, Timestamp>;

impl Edit {
    pub(super) const ALL: [Self; 5] = [Self::Redate, Self::Pause, Self::Rerule, Self::Delete, Self::Resume];

    /// For people.
    pub(super) const fn note(self) -> &'static str {
        match self {
            Self::Redate => "blue: a date in an hour is now in seconds",
            Self::Pause => "green: a schedule is paused",
            Self::Rerule => "blue: every second is now every three seconds",
            Self::Delete => "blue: a schedule is deleted",
            Self::Resume => "green: the paused schedule goes on",
        }
    }

    const fn second(self) -> u32 {
        match self {
            Self::Redate | Self::Pause => 3,
            Self::Rerule | Self::Delete => 5,
            Self::Resume => 7,
        }
    }
}

/// Every step from `from` on, up to `to`; both count.
pub(super) fn steps(from: Timestamp, every: u64, to: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..).map(move |number| from.plus(SECOND * every as u32 * number)).take_while(move |at| *at <= to)
}

impl Timetable {
    pub(super) fn new(now: Timestamp, options: &Options) -> Self {
        let length = Duration::from_secs(options.writing.as_secs().max(SHORTEST));
        let first = Timestamp::from_unix_micros((now.unix_micros() / 1_000_000 + 1) * 1_000_000).plus(HEAD_START);
        let dark = first.plus(length).plus(BETWEEN);
        let missed = first.plus(length).plus(2 * SECOND);
        // Behind the third by more than a second: what is later than that was missed.
        Self { first, dark, missed, light: missed.plus(3 * SECOND + BETWEEN), last: missed.plus(8 * SECOND) }
    }

    /// When this is done: between two instants.
    pub(super) fn moment(&self, edit: Edit) -> Timestamp {
        self.first.plus(SECOND * edit.second() + BETWEEN)
    }

    /// The date that is set instead of one in an hour.
    pub(super) fn redated_to(&self) -> Timestamp {
        self.first.plus(6 * SECOND)
    }

    /// The beginning of the rule instead of the one by which a schedule began: every three seconds.
    pub(super) fn reruled_to(&self) -> Timestamp {
        self.first.plus(7 * SECOND)
    }

    /// All but the impossible one.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let plain = |tenant, name: &str, every| Entry {
            tenant,
            name: name.to_owned(),
            every,
            from: self.first,
            to: self.last,
            missed: "all",
            overlap: "queue",
            on_interrupted: "retry",
            timeout: "1 minute",
        };
        let mut all = Vec::new();
        for tenant in HEALTHY {
            all.push(plain(tenant, "every second", Some(1)));
            all.push(plain(tenant, "every two seconds", Some(2)));
            all.push(Entry { on_interrupted: "fail", ..plain(tenant, "not again", Some(1)) });
            all.push(Entry { from: self.first.plus(3 * SECOND), ..plain(tenant, "once", None) });
        }
        all.push(Entry { from: self.first.plus(3600 * SECOND), ..plain("blue", "another date", None) });
        all.push(plain("blue", "another rule", Some(1)));
        all.push(plain("blue", "deleted", Some(1)));
        all.push(plain("green", "paused", Some(1)));
        for missed in ["all", "latest", "none"] {
            let (from, to) = (self.missed, self.missed.plus(2 * SECOND));
            all.push(Entry { missed, from, to, ..plain("green", &format!("missed {missed}"), Some(1)) });
        }
        all.push(Entry { overlap: "skip", timeout: "2 seconds", ..plain(HANGING, "hangs", Some(1)) });
        all
    }

    /// What is to be there at the end, and nothing else.
    pub(super) fn expected(&self, done: &Done) -> Vec<Expected> {
        let mut expected = Vec::new();
        for entry in self.entries() {
            let care = match (entry.tenant, entry.on_interrupted) {
                (HANGING, _) => Care::Hangs,
                (_, "fail") => Care::Fail,
                _ => Care::Retry,
            };
            let of = |planned| Expected {
                of: Occurrence { tenant: entry.tenant.to_owned(), schedule: entry.name.clone(), planned },
                care,
            };
            expected.extend(self.instants(&entry, done).into_iter().map(of));
        }
        expected
    }

    fn instants(&self, entry: &Entry, done: &Done) -> Vec<Timestamp> {
        let every = |every, from| steps(from, every, entry.to);
        match entry.name.as_str() {
            "another date" => vec![self.redated_to()],
            "another rule" => {
                let before = every(1, entry.from).filter(|at| *at <= done[&Edit::Rerule]);
                before.chain(every(3, self.reruled_to()).filter(|at| *at > done[&Edit::Rerule])).collect()
            }
            "deleted" => every(1, entry.from).filter(|at| *at <= done[&Edit::Delete]).collect(),
            "paused" => {
                every(1, entry.from).filter(|at| *at <= done[&Edit::Pause] || *at > done[&Edit::Resume]).collect()
            }
            "missed latest" => every(1, entry.from).last().into_iter().collect(),
            "missed none" => Vec::new(),
            _ => entry.every.map_or_else(|| vec![entry.from], |seconds| every(seconds, entry.from).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_counted_from_the_beginning_and_edits_replace_what_comes_behind_them() {
        let options = Options { writing: Duration::from_secs(1), ..Options::default() };
        let table = Timetable::new(Timestamp::from_unix_micros(1_000_250_000), &options);
        assert_eq!(table.first.unix_micros(), 1_004_000_000);
        let done: Done = Edit::ALL.into_iter().map(|edit| (edit, table.moment(edit))).collect();
        let expected = table.expected(&done);
        let of = |name: &str| -> Vec<i64> {
            let named = expected.iter().filter(|one| one.of.schedule == name);
            let mut at: Vec<i64> =
                named.map(|one| (one.of.planned.unix_micros() - table.first.unix_micros()) / 1_000_000).collect();
            at.sort_unstable();
            at.dedup();
            at
        };
        assert_eq!(of("deleted"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of("paused"), [0, 1, 2, 3].into_iter().chain(8..=22).collect::<Vec<_>>());
        assert_eq!(of("another rule"), [0, 1, 2, 3, 4, 5, 7, 10, 13, 16, 19, 22]);
        assert_eq!(of("another date"), [6]);
        assert_eq!(of("every two seconds"), (0..=22).step_by(2).collect::<Vec<_>>());
        assert_eq!([of("missed all"), of("missed latest"), of("missed none")], [vec![14, 15, 16], vec![16], vec![]]);
    }
}
