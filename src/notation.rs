//! How durations, sizes and bytes are written: in the configuration, in what is printed, and in names. Pure.

use std::time::Duration;

/// The units of durations with their lengths in microseconds, the shortest first.
pub const DURATION_UNITS: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 24 * 3_600_000_000),
];
/// The units of sizes in bytes, the smallest first.
pub const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A duration as the configuration and `--since` have it, to a microsecond.
#[must_use]
pub fn duration(duration: Duration) -> String {
    // Without days: a configuration that means the same prints the same, whichever version prints it.
    in_largest(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), &DURATION_UNITS[..6], "0s")
}

/// So many bytes, as the configuration has them.
#[must_use]
pub fn size(bytes: u64) -> String {
    in_largest(bytes, &SIZE_UNITS, "0B")
}

/// Bytes as lower-case hexadecimal digits, two for each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In the largest unit that leaves a whole number.
fn in_largest(count: u64, units: &[(&str, u64)], zero: &str) -> String {
    units
        .iter()
        .rev()
        .find(|(_, factor)| count != 0 && count.is_multiple_of(*factor))
        .map_or_else(|| zero.to_owned(), |(unit, factor)| format!("{}{unit}", count / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_written_in_its_largest_unit_without_days() {
        for (seconds, text) in [(604_800, "168h"), (3_600, "1h"), (6_900, "115m"), (3_601, "3601s"), (0, "0s")] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn each_byte_has_two_lower_case_digits() {
        assert_eq!(hex(&[0, 10, 0xab, 0xff]), "000aabff");
        assert_eq!(hex(&[]), "");
    }
}
