//! When the next look, or the next try, is due. Pure: time and chance come in as arguments.

use std::time::Duration;

pub mod freshness;

/// `[relay.poll]` of the configuration, and `freshness`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The shortest pause; of queues the one after a turn that found work, and the first one after an empty look.
    pub min: Duration,
    /// Pause that its growth ends at while nothing happens.
    pub max: Duration,
    /// Pause of a replica that found the cursor held by another. While another one moves it, pauses are shorter.
    pub standby: Duration,
    /// Whether notifications of the table's trigger end a pause, too.
    pub notify: bool,
    /// How long after its `created_at` a row should be acknowledged, but for one in a hundred.
    pub freshness: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min: Duration::from_millis(1),
            max: Duration::from_millis(200),
            standby: Duration::from_millis(250),
            notify: false,
            freshness: Duration::from_millis(10),
        }
    }
}

/// A pause that grows while nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Pace {
    /// Begins at the shortest pause.
    #[must_use]
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// The pause before the next look, given whether the last one found anything; twice as long each time nothing was.
    pub fn after(&mut self, found: bool) -> Duration {
        if found {
            self.next = self.min;
        }
        let pause = self.next;
        self.next = (self.next * 2).min(self.max);
        pause
    }
}

/// How long a stream of single rows is thought to go on. Each turn that relays rows earns one empty look, and each empty look
/// costs one: a writer who takes a few milliseconds to commit holds back all that is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience(u32);

impl Patience {
    /// As many empty looks may be earned.
    pub const MOST: u32 = 3;

    /// A turn has relayed rows.
    pub fn relayed(&mut self) {
        self.0 = (self.0 + 1).min(Self::MOST);
    }

    /// Whether to take the lock, which costs a transaction id, before a row has been seen.
    #[must_use]
    pub fn trusts(self) -> bool {
        self.0 == Self::MOST
    }

    /// A look has found nothing; whether to look again.
    #[must_use]
    pub fn missed(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    /// The lock was taken for nothing, which counts twice; whether to look again.
    #[must_use]
    pub fn wasted(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.missed()
    }
}

/// Pauses between tries after a failure: doubling, bounded, indefinitely, each drawn between half and the whole so that
/// replicas do not try in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The first pause.
    pub const FIRST: Duration = Duration::from_millis(100);
    /// The longest.
    pub const LONGEST: Duration = Duration::from_secs(10);

    /// No failure yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: 0 }
    }

    /// How often it has failed in a row.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The pause after one more failure; `chance` lies in 0..1.
    pub fn failed(&mut self, chance: f64) -> Duration {
        let pause = backoff(Self::FIRST, Self::LONGEST, self.failures, chance);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

/// The pause after so many failures before this one: `first`, doubled by each up to `longest`, and between half and the whole of
/// it by `chance`, which lies in 0..1.
#[must_use]
pub fn backoff(first: Duration, longest: Duration, failures: u32, chance: f64) -> Duration {
    let whole = first.saturating_mul(1 << failures.min(20)).min(longest);
    whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// How many rows a turn should take, by how long the last one took to publish.
///
/// A turn that reaches its deadline is cut, and what was on the wire then comes again: duplicates without a fault. So
/// turns begin small, grow while they are quick, and shrink before a slow receiver makes them late.
#[must_use]
pub fn appetite(rows: usize, most: usize, published_in: Duration, deadline: Duration) -> usize {
    let next = if published_in < deadline / 50 {
        rows.saturating_mul(4)
    } else if published_in < deadline / 5 {
        rows.saturating_mul(2)
    } else if published_in > deadline / 2 {
        rows / 4
    } else {
        rows
    };
    next.clamp(1, most.max(1))
}

/// How much larger than configured a turn may become while a backlog is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Of its rows.
    pub rows: usize,
    /// Of its bytes.
    pub bytes: usize,
}

impl Largest {
    /// Where a turn's rows stay in memory to its end, and those of the next are there already.
    pub const KEPT: Self = Self { rows: 4, bytes: 2 };
    /// Where rows leave the memory when they are acknowledged.
    pub const RELEASED: Self = Self { rows: 16, bytes: 16 };
}

/// No turn grows beyond so many rows that does not record its progress: they come again when its replica ends before it has advanced.
const UNCOMMITTED: usize = 40_000;

/// Maximum number of rows of a turn that is configured for `rows` and has grown.
#[must_use]
pub fn most_rows(rows: usize, growth: usize, recorded: bool) -> usize {
    let grown = rows.saturating_mul(growth);
    if recorded { grown } else { grown.min(rows.max(UNCOMMITTED)) }
}

/// By how much the rows of a turn are raised, up to `largest`, and its bytes, after a turn that took all it could. What a turn
/// costs besides its rows, `fixed`, is the same for many as for few: where it is long, because servers are far away or dead
/// versions of the cursor's row are in the way, turns become larger and not slower. They stay shorter than `time`, for which a
/// turn may read.
#[must_use]
pub fn stretch(now: usize, largest: Largest, fixed: Duration, published_in: Duration, time: Duration) -> usize {
    if published_in > time * 2 {
        1 // far from the turn's deadline: one that reaches it is cut, and what was on the wire then comes again
    } else if published_in > time || fixed < published_in / 100 {
        (now / 2).max(1)
    } else if fixed > published_in / 20 && published_in < time * 2 / 5 {
        let step = if published_in < time / 10 { 4 } else { 2 };
        (now * step).min(largest.rows)
    } else {
        now
    }
}

/// The rows of a relay's first turn.
pub const FIRST_APPETITE: usize = 2_000;

/// The standby pause with jitter: between half and one and a half of what is configured.
#[must_use]
pub fn standby(config: &Config, chance: f64) -> Duration {
    config.standby.mul_f64(0.5 + chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_while_idle_and_starts_again_when_something_is_found() {
        let mut pace = Pace::new(Duration::from_millis(1), Duration::from_millis(5));
        let pauses: Vec<_> = (0..5).map(|_| pace.after(false).as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
        assert_eq!(pace.after(true).as_millis(), 1);
    }

    #[test]
    fn turns_grow_while_they_are_quick_and_shrink_before_they_are_late() {
        let deadline = Duration::from_secs(5);
        assert_eq!(appetite(2_000, 20_000, Duration::from_millis(10), deadline), 8_000);
        assert_eq!(appetite(2_000, 20_000, Duration::from_millis(100), deadline), 4_000);
        assert_eq!(appetite(16_000, 20_000, Duration::from_millis(100), deadline), 20_000);
        assert_eq!(appetite(2_000, 20_000, Duration::from_secs(2), deadline), 2_000);
        assert_eq!(appetite(2_000, 20_000, Duration::from_secs(3), deadline), 500);
        assert_eq!(appetite(1, 20_000, deadline, deadline), 1);
    }

    #[test]
    fn turns_stretch_while_what_they_cost_whatever_their_rows_is_more_than_a_twentieth_of_them() {
        let millis = Duration::from_millis;
        let after = |now, fixed, published| stretch(now, Largest::KEPT, millis(fixed), millis(published), millis(500));
        assert_eq!(after(1, 6, 100), 2);
        assert_eq!(after(1, 6, 40), 4);
        assert_eq!(after(4, 50, 100), 4);
        assert_eq!(after(4, 3, 100), 4);
        assert_eq!(after(4, 0, 100), 2);
        assert_eq!(after(1, 0, 100), 1);
        assert_eq!(stretch(4, Largest::RELEASED, millis(6), millis(100), millis(500)), 8);
        // Never beyond the time for which a turn may read, and far from the deadline.
        assert_eq!(after(2, 100, 300), 2);
        assert_eq!(after(4, 100, 600), 2);
        assert_eq!(after(4, 400, 1_500), 1);
    }

    #[test]
    fn turn_that_grows_stays_below_what_may_come_again_unless_more_is_configured() {
        assert_eq!([1, 2, 16].map(|growth| most_rows(20_000, growth, false)), [20_000, 40_000, 40_000]);
        assert_eq!([1, 2, 16].map(|growth| most_rows(20_000, growth, true)), [20_000, 40_000, 320_000]);
        assert_eq!(most_rows(100, 16, false), 1_600);
        assert_eq!([1, 16].map(|growth| most_rows(1_000_000, growth, false)), [1_000_000, 1_000_000]);
    }

    // Guarantee: failures.outage
    #[test]
    fn backoff_grows_to_its_bound_and_never_ends() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..40).map(|_| backoff.failed(1.0)).collect();
        assert_eq!(pauses[0], Duration::from_millis(100));
        assert_eq!(pauses[3], Duration::from_millis(800));
        assert!(pauses[10..].iter().all(|pause| *pause == Backoff::LONGEST));
        assert_eq!(Backoff::new().failed(0.0), Duration::from_millis(50));
    }

    #[test]
    fn a_stream_that_has_gone_on_outlives_as_many_empty_looks_as_turns_and_three_at_the_most() {
        let mut patience = Patience::default();
        patience.relayed();
        assert!(!patience.missed(), "a single row is no stream");
        (0..10).for_each(|_| patience.relayed());
        assert_eq!([patience.missed(), patience.missed(), patience.missed()], [true, true, false]);
    }

    #[test]
    fn a_lock_that_was_taken_for_nothing_is_not_taken_on_trust_again_before_rows_have_come_twice() {
        let mut patience = Patience::default();
        (0..2).for_each(|_| patience.relayed());
        assert!(!patience.trusts());
        patience.relayed();
        assert!(patience.trusts());
        assert!(patience.wasted() && !patience.trusts());
        patience.relayed();
        assert!(!patience.trusts());
        patience.relayed();
        assert!(patience.trusts());
    }
}
