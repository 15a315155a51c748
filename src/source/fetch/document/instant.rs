//! Dates and points of time as JSON: `JsonEncodeDateTime`, with the style `USE_XSD_DATES`.

use std::io::Write as _;

use crate::position::{PAIRS, civil};

/// Days between 1970-01-01 and 2000-01-01, PostgreSQL's epoch.
pub(super) const EPOCH_DAYS: i64 = 10_957;
const DAY_MICROS: i64 = 86_400_000_000;
/// Behind the point of a second.
pub(super) const MOST_DIGITS: usize = 6;

/// A date, or a point of time.
pub(super) enum Instant {
    Infinity,
    NegInfinity,
    At {
        /// Since PostgreSQL's epoch.
        day: i64,
        /// None for a date.
        time: Option<Time>,
    },
}

/// A time of the day.
pub(super) struct Time {
    seconds: usize,
    micros: usize,
}

impl Time {
    fn of(micros: i64) -> Option<Self> {
        let [seconds, micros] = [micros / 1_000_000, micros % 1_000_000].map(usize::try_from);
        Some(Self { seconds: seconds.ok()?, micros: micros.ok()? })
    }
}

impl Instant {
    /// From the days since PostgreSQL's epoch, of which the ends mean infinity.
    pub(super) fn of_date(days: i32) -> Self {
        match days {
            i32::MAX => Self::Infinity,
            i32::MIN => Self::NegInfinity,
            day => Self::At { day: i64::from(day), time: None },
        }
    }

    /// From the microseconds since then.
    pub(super) fn of_micros(micros: i64) -> Option<Self> {
        Some(match micros {
            i64::MAX => Self::Infinity,
            i64::MIN => Self::NegInfinity,
            at => Self::At { day: at.div_euclid(DAY_MICROS), time: Some(Time::of(at.rem_euclid(DAY_MICROS))?) },
        })
    }

    /// Appends it with quotes, and with a zone behind a time. A second has so many digits behind the point; without a number those up to
    /// the last that is not zero.
    pub(super) fn write(self, zone: &str, digits: Option<usize>, out: &mut Vec<u8>) {
        let (day, time) = match self {
            Self::Infinity => return out.extend_from_slice(b"\"infinity\""),
            Self::NegInfinity => return out.extend_from_slice(b"\"-infinity\""),
            Self::At { day, time } => (day, time),
        };
        let (year, month, date) = civil(day + EPOCH_DAYS);
        let shown = if year > 0 { year } else { 1 - year };
        out.push(b'"');
        match usize::try_from(shown) {
            Ok(shown) if shown <= 9_999 => {
                out.extend_from_slice(&PAIRS[shown / 100]);
                out.extend_from_slice(&PAIRS[shown % 100]);
            }
            // A vector takes all that it is given.
            _ => drop(write!(out, "{shown}")),
        }
        let mut pair = |before: u8, value: usize| {
            out.push(before);
            out.extend_from_slice(&PAIRS[value]);
        };
        pair(b'-', month);
        pair(b'-', date);
        if let Some(Time { seconds, micros }) = time {
            pair(b'T', seconds / 3_600);
            pair(b':', seconds / 60 % 60);
            pair(b':', seconds % 60);
            if digits.map_or(micros > 0, |digits| digits > 0) {
                pair(b'.', micros / 10_000);
                out.extend_from_slice(&PAIRS[micros / 100 % 100]);
                out.extend_from_slice(&PAIRS[micros % 100]);
                match digits {
                    Some(digits) => out.truncate(out.len() - MOST_DIGITS.saturating_sub(digits)),
                    None => {
                        while out.last() == Some(&b'0') {
                            out.pop();
                        }
                    }
                }
            }
            out.extend_from_slice(zone.as_bytes());
        }
        if year <= 0 {
            out.extend_from_slice(b" BC");
        }
        out.push(b'"');
    }
}
