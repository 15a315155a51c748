//! Dates, times of the day and points of time, from texts as PostgreSQL's JSON and RFC 3339 have them.

use chrono::{Datelike as _, NaiveDate};

/// Days between 0001-01-01 and 1970-01-01.
const EPOCH: i64 = 719_163;
const DAY: i64 = 86_400;
/// Nanoseconds of a second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// What a unit of time is of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    /// In nanoseconds.
    const fn nanos(self) -> i64 {
        match self {
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

/// A point of time, or, without a zone, one of a calendar and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Since 1970-01-01 00:00, in UTC where the text has a zone.
    pub(super) seconds: i64,
    pub(super) nanos: i64,
    pub(super) has_zone: bool,
}

impl Moment {
    /// None for what is none, and beyond the years that four digits have.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (day, rest) = split(text, 10)?;
        let day = date(day)?;
        let rest = rest.strip_prefix(['T', 't', ' '])?;
        let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let (clock, zone) = rest.split_at(at);
        let nanos = time(clock)?;
        let offset = if zone.is_empty() { None } else { Some(offset(zone)?) };
        let seconds = i64::from(day) * DAY + nanos / SECOND - offset.unwrap_or(0);
        Some(Self { seconds, nanos: nanos % SECOND, has_zone: offset.is_some() })
    }

    /// How many units since 1970-01-01 00:00; what is less than one counts down to the earlier one. None beyond 64 bits.
    pub(super) fn count(self, unit: Unit) -> Option<i64> {
        let per_second = SECOND / unit.nanos();
        self.seconds.checked_mul(per_second)?.checked_add(self.nanos / unit.nanos())
    }
}

/// Days since 1970-01-01.
pub(super) fn date(text: &str) -> Option<i32> {
    let parts = text.as_bytes();
    if parts.len() != 10 || parts[4] != b'-' || parts[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[5..7])?, digits(&text[8..])?);
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    // Year 0 is none of PostgreSQL's.
    (year > 0).then(|| i64::from(day.num_days_from_ce()) - EPOCH).and_then(|days| i32::try_from(days).ok())
}

/// Nanoseconds since midnight of a text without a zone.
pub(super) fn time(text: &str) -> Option<i64> {
    let (clock, fraction) = split(text, 8)?;
    let parts = clock.as_bytes();
    if parts[2] != b':' || parts[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (digits(&clock[..2])?, digits(&clock[3..5])?, digits(&clock[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        Some(fraction) if (1..=9).contains(&fraction.len()) => {
            digits(fraction)? * 10_u32.pow(9 - u32::try_from(fraction.len()).ok()?)
        }
        _ => return None,
    };
    Some(i64::from(hour * 3_600 + minute * 60 + second) * SECOND + i64::from(nanos))
}

/// How many units since midnight.
pub(super) const fn time_in(nanos: i64, unit: Unit) -> i64 {
    nanos / unit.nanos()
}

/// Seconds east of Greenwich.
fn offset(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let mut seconds = 0;
    for (part, of) in text[1..].split(':').zip([3_600, 60, 1, 0]) {
        let number = digits(part).filter(|number| part.len() == 2 && *number < 60 && of > 0)?;
        seconds += i64::from(number) * of;
    }
    Some(sign * seconds)
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Up to and from that byte.
fn split(text: &str, at: usize) -> Option<(&str, &str)> {
    text.is_char_boundary(at).then(|| text.split_at_checked(at))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2026-02-28", 20_512),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(date(text), Some(days), "{text}");
        }
        for text in [
            "2026-02-29",
            "0000-01-01",
            "0044-03-15 BC",
            "12345-01-02",
            "infinity",
            "-infinity",
            "",
            "2026-1-01",
            "2026-01-01T",
            "2026/01/01",
            "20260-1-01",
            "２０26-01-01",
            "+026-01-01",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_nanoseconds_of_a_day() {
        assert_eq!(time("00:00:00"), Some(0));
        assert_eq!(time("23:59:59.999999"), Some(86_399_999_999_000));
        assert_eq!(time("01:02:03.5").map(|nanos| time_in(nanos, Unit::Millis)), Some(3_723_500));
        for text in
            ["24:00:00", "12:60:00", "12:00:60", "12:00", "12:00:00+02", "12:00:00.", "12:00:00.0000000001", "ä2:00:00"]
        {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn points_of_time_have_the_zone_that_is_written() {
        let micros =
            |text: &str| Moment::of(text).and_then(|moment| Some((moment.count(Unit::Micros)?, moment.has_zone)));
        assert_eq!(micros("1970-01-01T00:00:00+00:00"), Some((0, true)));
        assert_eq!(micros("2026-11-21T08:00:00.5+05:30"), Some((1_795_228_200_500_000, true)));
        assert_eq!(micros("2026-11-21t02:30:00.5z"), micros("2026-11-21T08:00:00.5+05:30"));
        assert_eq!(micros("2026-11-21 02:30:00.500000+00"), micros("2026-11-21T08:00:00.5+05:30"));
        assert_eq!(micros("1969-12-31T23:59:59.999999"), Some((-1, false)));
        assert_eq!(micros("0001-01-01T00:00:00Z"), Some((-62_135_596_800_000_000, true)));
        let before = Moment::of("1969-12-31T23:59:59.9995Z").expect("a moment");
        assert_eq!((before.count(Unit::Millis), before.count(Unit::Nanos)), (Some(-1), Some(-500_000)));
        assert_eq!(
            Moment::of("9999-12-31T00:00:00Z").and_then(|moment| moment.count(Unit::Nanos)),
            None,
            "beyond 64 bits"
        );
        for text in [
            "infinity",
            "-infinity",
            "0044-03-15T12:00:00.5+00:00 BC",
            "12345-01-02T03:04:05+00:00",
            "2026-01-01",
            "2026-01-01T00:00",
            "2026-01-01T00:00:00+",
            "2026-01-01T00:00:00+0",
            "2026-01-01T00:00:00+00:00:00:00",
            "2026-01-01T00:00:00 UTC",
            "2026-01-01T00:00:00+60:00",
        ] {
            assert_eq!(Moment::of(text), None, "{text}");
        }
    }
}
