//! Durations and sizes as people write them: a whole number and a unit, always.

use std::time::Duration;

use super::problem::Wrong;
use crate::notation::{DURATION_UNITS, SIZE_UNITS};

pub(super) use crate::notation::{duration as print_duration, size as print_size};

/// Reads a duration such as `5ms`; also for the command line.
///
/// # Errors
/// What is wrong and what to write, when there is no number, no unit or another unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    duration(text).map_err(|wrong| format!("{}; {}", wrong.what, wrong.fix))
}

pub(super) fn duration(text: &str) -> Result<Duration, Wrong> {
    let fix = "write a whole number and one of the units us, ms, s, m, h, d, for example \"500ms\"";
    parse(text, &DURATION_UNITS, "a duration", fix).map(Duration::from_micros)
}

pub(super) fn size(text: &str) -> Result<u64, Wrong> {
    let fix = "write a whole number and one of the units B, KiB, MiB, GiB, for example \"8MiB\"";
    parse(text, &SIZE_UNITS, "a size", fix)
}

fn parse(text: &str, units: &[(&str, u64)], kind: &str, fix: &str) -> Result<u64, Wrong> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(Wrong::new(format!("no number to make {kind} of"), fix));
    }
    if unit.is_empty() {
        return Err(Wrong::new(format!("{kind} without a unit"), fix));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(Wrong::new(format!("{kind} has no unit {unit:?}"), fix));
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| Wrong::new(format!("{kind} beyond all bounds"), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["5ms", "2s", "1m", "24h", "0s", "1500ms", "90s", "7us"] {
            assert_eq!(print_duration(duration(text).expect(text)), text);
        }
        for text in ["8MiB", "1GiB", "1000B", "64KiB", "0B"] {
            assert_eq!(print_size(size(text).expect(text)), text);
        }
    }

    #[test]
    fn a_unit_is_never_guessed() {
        for text in
            ["", "5", "ms", "5 ms", "5sec", "5S", "-5s", "1.5s", "1s500ms", "99999999999999999999s", "9999999999999h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["8", "8MB", "8mib", "8 MiB", "8M", "99999999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_duration("5").expect_err("no unit"),
            "a duration without a unit; write a whole number and one of the units us, ms, s, m, h, d, for example \"500ms\""
        );
    }
}
