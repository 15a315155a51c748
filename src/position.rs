//! Where a cursor stands: a point in the order `(created_at, id)`.
//!
//! Pure. Times are PostgreSQL's own: whole microseconds since 2000-01-01 00:00 UTC, with its two infinities, so that
//! no value of a `timestamptz` column can fail to be represented. Ids are the column's text; this program never orders
//! ids itself, because their order is the column type's and its collation's: PostgreSQL's business.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

mod document;
mod noted;

pub use document::utc;

/// Microseconds between 1970-01-01 and 2000-01-01, PostgreSQL's epoch.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const DAY_MICROS: i64 = 86_400_000_000;

/// An instant as PostgreSQL stores it: microseconds since 2000-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// PostgreSQL's `-infinity`.
    pub const NEG_INFINITY: Self = Self(i64::MIN);
    /// PostgreSQL's `infinity`.
    pub const INFINITY: Self = Self(i64::MAX);

    /// From PostgreSQL's binary form.
    #[must_use]
    pub const fn from_pg_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// PostgreSQL's binary form.
    #[must_use]
    pub const fn pg_micros(self) -> i64 {
        self.0
    }

    /// From microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros.saturating_sub(EPOCH_MICROS))
    }

    /// Seconds since 1970-01-01 UTC, for metrics.
    #[must_use]
    pub fn unix_seconds(self) -> f64 {
        self.0.saturating_add(EPOCH_MICROS) as f64 / 1e6
    }

    /// Microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn unix_micros(self) -> i64 {
        self.0.saturating_add(EPOCH_MICROS)
    }

    /// Reads an RFC 3339 instant, for example `2026-11-21T08:00:00Z`.
    ///
    /// # Errors
    /// The parser's, when the text is no RFC 3339 instant.
    pub fn parse_rfc3339(text: &str) -> Result<Self, chrono::ParseError> {
        DateTime::parse_from_rfc3339(text).map(|at| Self::from_unix_micros(at.timestamp_micros()))
    }

    /// False for the two infinities.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        self.0 != i64::MIN && self.0 != i64::MAX
    }

    /// This instant less a duration; infinities stay what they are.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        if self.is_finite() { Self(self.0.saturating_sub(micros(by)).max(i64::MIN + 1)) } else { self }
    }

    /// This instant plus a duration; infinities stay what they are.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        if self.is_finite() { Self(self.0.saturating_add(micros(by)).min(i64::MAX - 1)) } else { self }
    }

    /// How far this instant lies after `earlier`; zero when it does not, or when either is infinite.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        if !self.is_finite() || !earlier.is_finite() {
            return Duration::ZERO;
        }
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Timestamp {
    /// Its text of four-digit years, which nearly all instants have: 27 bytes, no allocation, because it is made of every
    /// message. None for others.
    fn common_text(self) -> Option<[u8; 27]> {
        let unix = self.0.checked_add(EPOCH_MICROS)?;
        let micros = usize::try_from(unix.rem_euclid(DAY_MICROS)).ok()?;
        let (year, month, date) = civil(unix.div_euclid(DAY_MICROS));
        let year = usize::try_from(year).ok().filter(|year| *year <= 9_999)?;
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut pair = |at: usize, value: usize| text[at..at + 2].copy_from_slice(&PAIRS[value]);
        pair(0, year / 100);
        pair(2, year % 100);
        pair(5, month);
        pair(8, date);
        pair(11, seconds / 3_600);
        pair(14, seconds / 60 % 60);
        pair(17, seconds % 60);
        pair(20, fraction / 10_000);
        pair(22, fraction / 100 % 100);
        pair(24, fraction % 100);
        Some(text)
    }

    /// The bytes of its text.
    pub(crate) fn text(self) -> Text {
        self.common_text().map_or_else(|| Text::Rare(self.to_string()), Text::Common)
    }
}

/// Year (0 is 1 BC), month and date of the day so many days after 1970-01-01, in the Gregorian calendar: Howard Hinnant's
/// `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>), with years that begin in March.
pub(crate) fn civil(day: i64) -> (i64, usize, usize) {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    // Both lie between 1 and 31.
    (year, usize::try_from(month).unwrap_or(0), usize::try_from(date).unwrap_or(0))
}

/// The numbers below a hundred in two digits.
pub(crate) const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [*b"00"; 100];
    let (mut tens, mut at) = (b'0', 0);
    while tens <= b'9' {
        let mut ones = b'0';
        while ones <= b'9' {
            pairs[at] = [tens, ones];
            at += 1;
            ones += 1;
        }
        tens += 1;
    }
    pairs
};

/// A timestamp's text; see its `Display`.
pub(crate) enum Text {
    /// Nearly always.
    Common([u8; 27]),
    /// Infinite, or of a year that has not four digits.
    Rare(String),
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Common(text) => text,
            Self::Rare(text) => text.as_bytes(),
        }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with microseconds; instants beyond its four-digit years keep PostgreSQL's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.common_text()
            && let Ok(text) = std::str::from_utf8(&text)
        {
            return f.write_str(text);
        }
        match *self {
            Self::INFINITY => f.write_str("infinity"),
            Self::NEG_INFINITY => f.write_str("-infinity"),
            Self(micros) => {
                let at = DateTime::<Utc>::from_timestamp(EPOCH_MICROS / 1_000_000, 0)
                    .and_then(|epoch| epoch.checked_add_signed(TimeDelta::microseconds(micros)));
                match at {
                    Some(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::Micros, true)),
                    None => write!(f, "2000-01-01T00:00:00Z{micros:+}us"),
                }
            }
        }
    }
}

/// The same text of an instant in SQL.
macro_rules! instant_sql {
    ($at:literal) => {
        concat!(
            "COALESCE(pg_catalog.to_char(pg_catalog.timezone('UTC', ",
            $at,
            "), 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), (",
            $at,
            ")::text)"
        )
    };
}
pub(crate) use instant_sql;

/// The point a cursor has reached; the exclusive lower bound of its next read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The row's `created_at`.
    pub created_at: Timestamp,
    /// The row's id as text. `None` sorts before every id: all rows of that instant are still to come.
    pub id: Option<String>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "({}, {id})", self.created_at),
            None => write!(f, "({}, before every id)", self.created_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_rfc3339_with_microseconds_and_reads_it_back() {
        let at = Timestamp::parse_rfc3339("2026-11-21T08:00:00.000001+01:00").expect("valid");
        assert_eq!(at.to_string(), "2026-11-21T07:00:00.000001Z");
        assert_eq!(Timestamp::parse_rfc3339(&at.to_string()).expect("valid"), at);
        assert_eq!(Timestamp::from_pg_micros(0).to_string(), "2000-01-01T00:00:00.000000Z");
    }

    proptest::proptest! {
        #[test]
        fn is_printed_as_chrono_prints_it(micros in -80_000_000_000_000_000_i64..300_000_000_000_000_000) {
            let at = DateTime::<Utc>::from_timestamp_micros(micros + EPOCH_MICROS).expect("in chrono's range");
            let known = at.to_rfc3339_opts(SecondsFormat::Micros, true);
            let at = Timestamp::from_pg_micros(micros);
            let text = at.text();
            proptest::prop_assert_eq!(text.as_ref(), known.as_bytes());
            proptest::prop_assert_eq!(at.to_string(), known);
        }
    }

    #[test]
    fn the_ends_of_four_digit_years_and_leap_days_are_printed_right() {
        for (text, micros) in [
            ("0000-01-01T00:00:00.000000Z", -63_113_904_000_000_000),
            ("0000-02-29T00:00:00.000000Z", -63_108_806_400_000_000),
            ("0000-03-01T00:00:00.000000Z", -63_108_720_000_000_000),
            ("9999-12-31T23:59:59.999999Z", 252_455_615_999_999_999),
            ("+10000-01-01T00:00:00.000000Z", 252_455_616_000_000_000),
        ] {
            let at = Timestamp::from_pg_micros(micros);
            assert_eq!((at.to_string().as_str(), at.text().as_ref()), (text, text.as_bytes()));
        }
    }

    #[test]
    fn every_stored_value_can_be_printed_and_moved() {
        for micros in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
            let at = Timestamp::from_pg_micros(micros);
            assert!(!at.to_string().is_empty());
            assert_eq!(at.text().as_ref(), at.to_string().as_bytes());
            assert_eq!(at.minus(Duration::MAX).is_finite(), at.is_finite());
            assert_eq!(at.plus(Duration::MAX).is_finite(), at.is_finite());
        }
        assert_eq!(Timestamp::INFINITY.to_string(), "infinity");
    }
}
