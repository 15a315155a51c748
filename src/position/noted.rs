//! Instants in the notes of operations: texts that PostgreSQL reads as well, whatever the year.

use super::{DAY_MICROS, EPOCH_MICROS, Timestamp, civil};

/// No instant of PostgreSQL lies beyond these years, of which 0 is 1 BC.
const YEARS: std::ops::RangeInclusive<i64> = -4_800..=300_000;

impl Timestamp {
    /// Its text in a note: as it is printed, except for years that RFC 3339 does not have, of which PostgreSQL reads only its own form.
    #[must_use]
    pub fn noted(self) -> String {
        // The day since 1970: the instant itself may be too far away to be counted from there.
        let (year, month, date) = civil(self.0.div_euclid(DAY_MICROS) + EPOCH_MICROS / DAY_MICROS);
        if !self.is_finite() || (1..=9_999).contains(&year) {
            return self.to_string();
        }
        let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
        let micros = self.0.rem_euclid(DAY_MICROS);
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z{era}")
    }

    /// Reads what [`Self::noted`] writes, what is printed of a year that RFC 3339 does not have, and what PostgreSQL writes into
    /// documents; none of any other text.
    #[must_use]
    pub fn parse_noted(text: &str) -> Option<Self> {
        match text {
            "infinity" => return Some(Self::INFINITY),
            "-infinity" => return Some(Self::NEG_INFINITY),
            _ => {}
        }
        if let Ok(at) = Self::parse_rfc3339(text) {
            return Some(at);
        }
        let (text, is_bc) = text.strip_suffix(" BC").map_or((text, false), |text| (text, true));
        let (day, time) = text.split_once('T')?;
        let within = Self::parse_rfc3339(&format!("2000-01-01T{time}")).ok()?;
        let mut parts = day.rsplitn(3, '-');
        let (date, month) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let year: i64 = parts.next()?.parse().ok()?;
        let day = day_of(if is_bc { 1_i64.checked_sub(year)? } else { year }, month, date)?;
        let midnight = (day - EPOCH_MICROS / DAY_MICROS).checked_mul(DAY_MICROS)?;
        midnight.checked_add(within.0).map(Self)
    }
}

/// The number of a day after 1970-01-01, the reverse of [`civil`]; none if the calendar does not have it.
fn day_of(year: i64, month: usize, date: usize) -> Option<i64> {
    if !YEARS.contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return None;
    }
    // Years begin in March there.
    let begun = year - i64::from(month <= 2);
    let (era, year_of_era) = (begun.div_euclid(400), begun.rem_euclid(400));
    let day_of_year = i64::try_from((153 * ((month + 9) % 12) + 2) / 5 + date - 1).ok()?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468).filter(|day| civil(*day) == (year, month, date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_any_year_are_noted_as_postgresql_reads_them() {
        for (micros, text) in [
            (0, "2000-01-01T00:00:00.000000Z"),
            (252_455_615_999_999_999, "9999-12-31T23:59:59.999999Z"),
            (252_455_616_000_000_000, "10000-01-01T00:00:00.000000Z"),
            (-63_113_904_000_000_000, "0001-01-01T00:00:00.000000Z BC"),
            // The first and the last that PostgreSQL has.
            (-211_813_488_000_000_000, "4714-11-24T00:00:00.000000Z BC"),
            (9_223_371_331_199_999_999, "294276-12-31T23:59:59.999999Z"),
            (i64::MAX, "infinity"),
            (i64::MIN, "-infinity"),
        ] {
            let at = Timestamp::from_pg_micros(micros);
            assert_eq!(at.noted(), text);
            assert_eq!(Timestamp::parse_noted(text), Some(at), "{text}");
        }
    }

    #[test]
    fn what_others_write_is_read_and_garbled_texts_are_not() {
        let at = |micros| Some(Timestamp::from_pg_micros(micros));
        assert_eq!(Timestamp::parse_noted("10000-01-01T01:00:00+01:00"), at(252_455_616_000_000_000));
        assert_eq!(Timestamp::parse_noted("4714-11-24T00:00:00+00:00 BC"), at(-211_813_488_000_000_000));
        for text in [
            "",
            "T",
            "soon",
            "10000-01-01",
            "10000-01-01T25:00:00Z",
            "10000-13-01T00:00:00Z",
            "10001-02-29T00:00:00Z",
            "9999999999999-01-01T00:00:00Z",
            "-9223372036854775808-01-01T00:00:00Z BC",
            "1-1T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse_noted(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_noted_or_printed_is_read_back(micros in -211_813_488_000_000_000_i64..9_223_371_331_200_000_000) {
            let at = Timestamp::from_pg_micros(micros);
            proptest::prop_assert_eq!(Timestamp::parse_noted(&at.noted()), Some(at));
        }

        #[test]
        fn what_is_printed_of_any_year_is_read(micros in -80_000_000_000_000_000_i64..300_000_000_000_000_000) {
            let at = Timestamp::from_pg_micros(micros);
            proptest::prop_assert_eq!(Timestamp::parse_noted(&at.to_string()), Some(at));
        }
    }
}
