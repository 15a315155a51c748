//! A schedule's occurrences: the next one, and the newest of many.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;

use super::calendar::{Calendar, LAST_YEAR, day_after};
use super::clock::Clock;
use super::problem::{Problem, shown};
use super::rule::{Rule, Until};
use super::walk::{Merge, Occurrence, Walk, Wall, first_local};
use super::zone;
use crate::position::Timestamp;

/// Seconds since 1970 of the first instant that a rule may begin with: 1900-01-01.
const EARLIEST: i64 = -2_208_988_800;
/// Nothing is planned after this: the end of 2200.
const LATEST: i64 = 7_289_654_399;
/// More than these are not counted.
const MOST_COUNTED: usize = 10_000;

/// What a schedule says about when.
#[derive(Clone, Copy, Debug)]
pub struct When<'a> {
    /// A recurrence rule after RFC 5545; none for one action at `starts_at`.
    pub rule: Option<&'a str>,
    /// The zone of the rule's local times.
    pub time_zone: &'a str,
    /// Nothing before it; the rule counts from it.
    pub starts_at: Option<Timestamp>,
    /// Nothing after it.
    pub ends_at: Option<Timestamp>,
    /// When this was written: a rule has no past before it.
    pub changed_at: Timestamp,
}

/// A schedule's occurrences.
#[derive(Clone, Debug)]
pub struct Recurrence(RecurrenceKind);

#[derive(Clone, Debug)]
enum RecurrenceKind {
    /// One action, unless it lies after the schedule's end.
    Once(Option<Timestamp>),
    Rule(Box<Repeated>),
}

#[derive(Clone, Debug)]
struct Repeated {
    form: Form,
    zone: Tz,
    /// The first second that may have an occurrence.
    first: i64,
    /// The last one.
    last: i64,
}

#[derive(Clone, Debug)]
enum Form {
    Calendar(Box<Calendar>),
    Clock(Box<Clock>),
}

impl Recurrence {
    /// Reads and checks what a schedule says.
    ///
    /// # Errors
    /// Why it cannot be planned.
    pub fn new(when: &When<'_>) -> Result<Self, Problem> {
        let zone = zone::parse(when.time_zone)?;
        if when.starts_at.is_some_and(|at| !at.is_finite()) {
            return Err(Problem::new("starts_at", "starts_at is infinite: write an instant"));
        }
        if let Some(text) = when.rule {
            return Ok(Self(RecurrenceKind::Rule(Box::new(Repeated::new(when, text, zone)?))));
        }
        let at = when.starts_at.ok_or_else(|| {
            Problem::new(
                "starts_at",
                "neither rule nor starts_at is given: write a rule, or the date of the one action",
            )
        })?;
        Ok(Self(RecurrenceKind::Once(Some(at).filter(|at| when.ends_at.is_none_or(|end| *at <= end)))))
    }

    /// The first occurrence strictly after an instant; none when there is never one again.
    ///
    /// # Errors
    /// When it lies beyond the last year, or the search for it costs too much.
    pub fn next(&self, after: Timestamp) -> Result<Option<Timestamp>, Problem> {
        Ok(self.following(after, 1)?.first().map(|occurrence| occurrence.at))
    }

    /// At most so many occurrences strictly after an instant, and what the clocks did to each. They are fewer when there is
    /// never one again.
    ///
    /// # Errors
    /// When the first lies beyond the last year, or the search costs too much.
    pub fn following(&self, after: Timestamp, count: usize) -> Result<Vec<Occurrence>, Problem> {
        match &self.0 {
            RecurrenceKind::Once(at) => {
                let due = at.filter(|at| *at > after).into_iter().take(count);
                Ok(due.map(|at| Occurrence { at, wall: Wall::Plain }).collect())
            }
            RecurrenceKind::Rule(rule) => rule.following(after, count),
        }
    }

    /// The newest occurrence after one instant and not after another, and how many there are, counted up to `cap`. The
    /// newest is right however many there are: it is found by halving, not by walking.
    ///
    /// # Errors
    /// When the search costs too much.
    pub fn newest(
        &self,
        after: Timestamp,
        until: Timestamp,
        cap: usize,
    ) -> Result<Option<(Timestamp, usize)>, Problem> {
        match &self.0 {
            RecurrenceKind::Once(at) => Ok(at.filter(|at| *at > after && *at <= until).map(|at| (at, 1))),
            RecurrenceKind::Rule(rule) => rule.newest(after, until, cap),
        }
    }
}

impl Repeated {
    fn new(when: &When<'_>, text: &str, zone: Tz) -> Result<Self, Problem> {
        let mut rule = Rule::parse(text)?;
        if rule.is_sub_daily() && rule.has_by_parts() && !zone::is_utc(zone) {
            return Err(Problem::rule(format!(
                "FREQ={} with BY… parts counts in UTC, and time_zone is {zone}: \
                 write it as FREQ=DAILY with BYHOUR and BYMINUTE, or use time_zone UTC",
                rule.freq
            )));
        }
        let written = down(when.changed_at);
        let start = when.starts_at.map(up);
        if start.is_some_and(|start| !(EARLIEST..=LATEST).contains(&start)) {
            return Err(Problem::new("starts_at", format!("starts_at lies outside the years 1900 to {LAST_YEAR}")));
        }
        if start.is_none() {
            rule.means_whole_times();
        }
        let first = (written + 1).max(start.unwrap_or(EARLIEST));
        let (count, until) = (rule.count, rule.until);
        let origin = start.unwrap_or(written);
        let form = if rule.is_sub_daily() {
            Form::Clock(Box::new(Clock::new(rule, zone::local(Tz::UTC, origin))))
        } else {
            Form::Calendar(Box::new(Calendar::new(rule, zone::local(zone, origin))?))
        };
        let mut repeated = Self { form, zone, first, last: LATEST };
        if repeated.walk(first, LATEST).next().transpose()?.is_none() {
            return Err(Problem::new(
                "never",
                format!(
                    "the rule \"{}\" never occurs before the year {}: no date and time has all its parts",
                    shown(text),
                    LAST_YEAR + 1
                ),
            ));
        }
        let counted = match count {
            Some(count) => repeated.walk(start.unwrap_or(first), LATEST).nth(count - 1).transpose()?.map(|(at, _)| at),
            None => None,
        };
        let ends = [counted, until.map(|until| last_second(zone, until)), when.ends_at.map(down)];
        repeated.last = ends.into_iter().flatten().fold(LATEST, i64::min);
        Ok(repeated)
    }

    fn walk(&self, from: i64, to: i64) -> Walk<'_> {
        match &self.form {
            Form::Calendar(calendar) => {
                let locals = calendar.from(first_local(self.zone, from));
                Walk::Calendar(Box::new(Merge::new(locals, self.zone, from)))
            }
            Form::Clock(clock) => Walk::Clock(clock.between(from, to)),
        }
    }

    fn following(&self, after: Timestamp, count: usize) -> Result<Vec<Occurrence>, Problem> {
        let from = self.first.max(down(after) + 1);
        if from > self.last || count == 0 {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for occurrence in self.walk(from, self.last).take(count) {
            let (at, wall) = occurrence?;
            if at > self.last {
                return Ok(found);
            }
            found.push(Occurrence { at: timestamp(at), wall });
        }
        if found.is_empty() && self.last == LATEST {
            return Err(Problem::new(
                "beyond",
                format!(
                    "the next occurrence lies beyond the year {LAST_YEAR}: \
                     give the schedule an end, or a shorter interval"
                ),
            ));
        }
        Ok(found)
    }

    fn newest(&self, after: Timestamp, until: Timestamp, cap: usize) -> Result<Option<(Timestamp, usize)>, Problem> {
        let (from, to) = (self.first.max(down(after) + 1), self.last.min(down(until)));
        let cap = cap.clamp(1, MOST_COUNTED);
        let mut count = 0;
        let mut newest = None;
        if from > to {
            return Ok(None);
        }
        for occurrence in self.walk(from, to) {
            let (at, _) = match occurrence {
                // What is known already stands; the newest is found below.
                Err(_) if newest.is_some() => break,
                occurrence => occurrence?,
            };
            if at > to {
                return Ok(newest.map(|at| (timestamp(at), count)));
            }
            newest = Some(at);
            count += 1;
            if count == cap {
                break;
            }
        }
        let Some(newest) = newest else { return Ok(None) };
        Ok(Some((timestamp(self.last_between(newest, to)?), count)))
    }

    /// The last occurrence up to an instant, from one that is known.
    fn last_between(&self, known: i64, to: i64) -> Result<i64, Problem> {
        let (mut known, mut to) = (known, to);
        while known < to {
            let middle = known + (to - known) / 2;
            match self.walk(middle + 1, to).next().transpose()? {
                Some((at, _)) if at <= to => known = at,
                _ => to = middle,
            }
        }
        Ok(known)
    }
}

fn last_second(zone: Tz, until: Until) -> i64 {
    let in_zone =
        |local: NaiveDateTime| if near(local.date()) { zone::instant(zone, local).0 } else { zone::seconds(local) };
    match until {
        Until::Day(day) => in_zone(day_after(day).and_time(NaiveTime::MIN)) - 1,
        Until::Local(local) => in_zone(local),
        Until::Utc(at) => zone::seconds(at),
    }
}

/// True for the days whose zones matter; `UNTIL` may name any.
fn near(day: NaiveDate) -> bool {
    use chrono::Datelike as _;
    (1899..=LAST_YEAR + 1).contains(&day.year())
}

/// Whole seconds since 1970, downwards; what lies outside the years of rules is brought to their edge.
fn down(at: Timestamp) -> i64 {
    at.unix_micros().div_euclid(1_000_000).clamp(EARLIEST - 1, LATEST + 1)
}

/// The same upwards: an occurrence is a whole second, and none lies before the start. The range is not brought to an edge.
fn up(at: Timestamp) -> i64 {
    let micros = at.unix_micros();
    micros.div_euclid(1_000_000) + i64::from(micros.rem_euclid(1_000_000) > 0)
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(seconds.saturating_mul(1_000_000))
}
