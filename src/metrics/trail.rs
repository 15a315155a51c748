//! What this process has seen of each cursor in the last hour: lag, and in which stages it arose, for small charts, and the rate of
//! acknowledged rows; and how the last comparison with its table ended.
//!
//! Bounded: 5 KiB for each configured cursor, whatever happens. It is fed by what is measured and counted anyway, and
//! costs no query.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{AuditResult, Stage};

/// How many points a chart has.
pub const POINTS: usize = 120;
/// What a point covers; it is the longest lag, or the longest time in a stage, in that time.
const SPAN: Duration = Duration::from_secs(30);
/// A rate is that of so many seconds.
const RATED: usize = 10;

/// One cursor's.
#[derive(Debug)]
pub struct Trail {
    begun: Instant,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The spans of the last hour in which something was measured, oldest first.
    spans: VecDeque<Span>,
    /// When lag and backlog were last measured, and what they were.
    last: Option<Measured>,
    /// The number of a second, and how many rows were acknowledged in it.
    seconds: VecDeque<(u64, u64)>,
    has_published: bool,
    audited: Option<Audited>,
}

/// The longest times that were measured in one span, in seconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    number: u64,
    lag: f32,
    /// In the order of [`Stage::ALL`].
    stages: [f32; 4],
}

impl Span {
    /// What was measured again in the same span.
    fn raise(&mut self, other: &Self) {
        self.lag = self.lag.max(other.lag);
        for (longest, stage) in self.stages.iter_mut().zip(other.stages) {
            *longest = longest.max(stage);
        }
    }
}

/// The last comparison of what a cursor has passed with its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audited {
    /// What was found.
    pub result: AuditResult,
    /// When.
    pub at: Instant,
}

/// Lag and backlog as this process measured them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The age of the oldest row that waits.
    pub lag: Duration,
    /// How many rows wait.
    pub rows: u64,
    /// How long the row that was followed has been in each stage, in the order of [`Stage::ALL`]; zeros without one.
    pub stages: [Duration; 4],
    /// When.
    pub at: Instant,
}

static ALL: LazyLock<Mutex<BTreeMap<String, Arc<Trail>>>> = LazyLock::new(Mutex::default);

fn all() -> MutexGuard<'static, BTreeMap<String, Arc<Trail>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The trail of a cursor that this process is configured for; the same one each time.
#[must_use]
pub fn of(cursor: &str) -> Arc<Trail> {
    Arc::clone(all().entry(cursor.to_owned()).or_insert_with(|| Arc::new(Trail::new(Instant::now()))))
}

/// The trail of a cursor; none when this process has nothing to do with it.
#[must_use]
pub fn find(cursor: &str) -> Option<Arc<Trail>> {
    all().get(cursor).cloned()
}

impl Trail {
    fn new(begun: Instant) -> Self {
        Self { begun, seen: Mutex::default() }
    }

    /// The number of the span of this length in which an instant lies.
    fn number(&self, at: Instant, span: Duration) -> u64 {
        at.saturating_duration_since(self.begun).as_secs() / span.as_secs()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lag and backlog were measured.
    pub fn measured(&self, measured: Measured) {
        let span = Span {
            number: self.number(measured.at, SPAN),
            lag: measured.lag.as_secs_f32(),
            stages: measured.stages.map(|stage| stage.as_secs_f32()),
        };
        let mut seen = self.seen();
        seen.last = Some(measured);
        match seen.spans.back_mut() {
            Some(last) if last.number == span.number => last.raise(&span),
            _ => seen.spans.push_back(span),
        }
        if seen.spans.len() > POINTS {
            seen.spans.pop_front();
        }
    }

    /// Rows were acknowledged.
    pub fn published(&self, rows: u64, at: Instant) {
        let number = self.number(at, Duration::from_secs(1));
        let mut seen = self.seen();
        seen.has_published |= rows > 0;
        match seen.seconds.back_mut() {
            Some((last, sum)) if *last == number => *sum += rows,
            _ => seen.seconds.push_back((number, rows)),
        }
        if seen.seconds.len() > RATED + 1 {
            seen.seconds.pop_front();
        }
    }

    /// What the cursor has passed was compared with its table, or could not be.
    pub fn compared(&self, result: AuditResult, at: Instant) {
        self.seen().audited = Some(Audited { result, at });
    }

    /// The last comparison; none when this process has made none.
    #[must_use]
    pub fn audited(&self) -> Option<Audited> {
        self.seen().audited
    }

    /// What was last measured.
    #[must_use]
    pub fn last(&self) -> Option<Measured> {
        self.seen().last
    }

    /// Rows a second in the last ten; none when this process has never published for the cursor.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Option<f64> {
        let number = self.number(now, Duration::from_secs(1));
        let seen = self.seen();
        let recent = seen.seconds.iter().filter(|(second, _)| second + RATED as u64 > number);
        let rows: u64 = recent.map(|(_, rows)| rows).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = rows as f64 / RATED as f64;
        seen.has_published.then_some(rate)
    }

    /// The longest lag, in seconds, in each span of the last hour, oldest first; none where it was not measured.
    #[must_use]
    pub fn lags(&self, now: Instant) -> [Option<f32>; POINTS] {
        self.points(now, |span| span.lag)
    }

    /// The longest time in a stage, in seconds, in each span of the last hour, oldest first; none where it was not measured.
    #[must_use]
    pub fn times_in(&self, stage: Stage, now: Instant) -> [Option<f32>; POINTS] {
        self.points(now, |span| span.stages[stage as usize])
    }

    fn points(&self, now: Instant, of: impl Fn(&Span) -> f32) -> [Option<f32>; POINTS] {
        let number = self.number(now, SPAN);
        let mut points = [None; POINTS];
        for span in &self.seen().spans {
            let ago = usize::try_from(number.saturating_sub(span.number)).unwrap_or(usize::MAX);
            if let Some(at) = (POINTS - 1).checked_sub(ago) {
                points[at] = Some(of(span));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(trail: &Trail, seconds: u64) -> Instant {
        trail.begun + Duration::from_secs(seconds)
    }

    fn measure(trail: &Trail, seconds: u64, lag: u64) {
        measure_stages(trail, seconds, [0, 0, lag, 0]);
    }

    fn measure_stages(trail: &Trail, seconds: u64, stages: [u64; 4]) {
        let lag: u64 = stages.iter().sum();
        let stages = stages.map(Duration::from_secs);
        trail.measured(Measured { lag: Duration::from_secs(lag), rows: lag, stages, at: at(trail, seconds) });
    }

    #[test]
    fn a_chart_has_the_longest_lag_of_each_half_minute_and_gaps_where_none_was_measured() {
        let trail = Trail::new(Instant::now());
        for (seconds, lag) in [(0, 1), (10, 7), (29, 2), (90, 3)] {
            measure(&trail, seconds, lag);
        }
        let points = trail.lags(at(&trail, 95));
        assert_eq!(points[POINTS - 4..], [Some(7.0), None, None, Some(3.0)]);
        assert!(points[..POINTS - 4].iter().all(Option::is_none));
        assert_eq!(trail.last().map(|last| last.rows), Some(3));
    }

    #[test]
    fn an_hour_is_kept_and_nothing_before_it() {
        let trail = Trail::new(Instant::now());
        for minute in 0..600 {
            measure(&trail, minute * 60, minute);
        }
        assert!(trail.seen().spans.len() <= POINTS);
        let points = trail.lags(at(&trail, 599 * 60));
        assert_eq!(points[POINTS - 1], Some(599.0));
        assert_eq!(points.iter().flatten().count(), POINTS / 2, "each second half minute");
        assert!(trail.lags(at(&trail, 700 * 60)).iter().all(Option::is_none));
    }

    // Guarantee: page.stages
    #[test]
    fn charts_of_stages_have_the_longest_time_of_each_half_minute() {
        let trail = Trail::new(Instant::now());
        for (seconds, stages) in [(0, [4, 0, 1, 0]), (20, [2, 0, 3, 0]), (60, [0, 0, 0, 5])] {
            measure_stages(&trail, seconds, stages);
        }
        let points = |stage| trail.times_in(stage, at(&trail, 60))[POINTS - 3..].to_vec();
        assert_eq!(points(Stage::CommitWait), [Some(4.0), None, Some(0.0)]);
        assert_eq!(points(Stage::HorizonHold), [Some(0.0), None, Some(0.0)]);
        assert_eq!(points(Stage::Queue), [Some(3.0), None, Some(0.0)]);
        assert_eq!(points(Stage::Publish), [Some(0.0), None, Some(5.0)]);
        let last = trail.last().map(|last| last.stages.map(|stage| stage.as_secs()));
        assert_eq!(last, Some([0, 0, 0, 5]));
    }

    #[test]
    fn cursor_takes_at_most_5_kib() {
        let trail = Trail::new(Instant::now());
        for second in 0..7_200 {
            measure(&trail, second, second);
            trail.published(1, at(&trail, second));
        }
        let seen = trail.seen();
        let spans = seen.spans.capacity() * size_of::<Span>();
        let seconds = seen.seconds.capacity() * size_of::<(u64, u64)>();
        let bytes = size_of::<Trail>() + spans + seconds;
        assert!(bytes <= 5 << 10, "{bytes} bytes");
    }

    #[test]
    fn a_rate_is_that_of_the_last_ten_seconds_and_unknown_without_any_row() {
        let trail = Trail::new(Instant::now());
        assert_eq!(trail.rate(at(&trail, 5)), None);
        trail.published(0, at(&trail, 5));
        assert_eq!(trail.rate(at(&trail, 5)), None);
        for second in 0..30 {
            trail.published(20, at(&trail, second));
            trail.published(30, at(&trail, second));
        }
        assert_eq!(trail.rate(at(&trail, 29)), Some(50.0));
        assert_eq!(trail.rate(at(&trail, 60)), Some(0.0));
    }
}
