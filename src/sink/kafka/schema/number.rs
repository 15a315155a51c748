//! Decimal numbers from their digits, without a loss.

use num_bigint::BigInt;

/// An exponent beyond this means no number that a field could hold; PostgreSQL's numbers have 131,072 digits before the point.
const MOST_EXPONENT: i64 = 200_000;

/// A number: its digits times ten to the power of minus `scale`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Without zeros at their ends; none for zero.
    digits: String,
    /// Of the last digit, behind the point; negative before it.
    scale: i64,
}

/// Why a number is not one of the schema's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// It has so many digits behind the point.
    Scale(i64),
    /// It would have so many digits.
    Precision(i64),
}

impl Decimal {
    /// As JSON or PostgreSQL writes it; none for what is no number of such digits, `NaN` for example.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], exponent(&rest[at + 1..])?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let mut digits = format!("{whole}{fraction}");
        let mut scale = i64::try_from(fraction.len()).ok()? - exponent;
        let kept = digits.trim_end_matches('0').len();
        scale -= i64::try_from(digits.len() - kept).ok()?;
        digits.truncate(kept);
        digits.drain(..digits.len() - digits.trim_start_matches('0').len());
        if digits.is_empty() {
            return Some(Self { negative: false, digits, scale: 0 });
        }
        Some(Self { negative, digits, scale })
    }

    /// The whole number, if it is one of these; none beyond 38 digits.
    pub(super) fn whole(&self) -> Option<i128> {
        self.at(0, 38).ok().and_then(|text| text.parse().ok())
    }

    /// The whole number that it is times ten to the power of `scale`, as big-endian bytes of the two's complement, as few as it takes.
    pub(super) fn unscaled(&self, scale: usize, precision: usize) -> Result<Vec<u8>, Excess> {
        let (scale, precision) = (i64::try_from(scale), i64::try_from(precision));
        let text = self.at(scale.unwrap_or(i64::MAX), precision.unwrap_or(i64::MAX))?;
        // Digits that were counted: they are a number.
        Ok(text.parse::<BigInt>().unwrap_or_default().to_signed_bytes_be())
    }

    /// Its digits at that scale.
    fn at(&self, scale: i64, precision: i64) -> Result<String, Excess> {
        let zeros = scale.saturating_sub(self.scale);
        let Ok(more) = usize::try_from(zeros) else { return Err(Excess::Scale(self.scale)) };
        if self.digits.is_empty() {
            return Ok("0".to_owned());
        }
        let length = zeros.saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX));
        if length > precision || zeros > 2 * MOST_EXPONENT {
            return Err(Excess::Precision(length));
        }
        let sign = if self.negative { "-" } else { "" };
        Ok(format!("{sign}{}{}", self.digits, "0".repeat(more)))
    }
}

fn exponent(text: &str) -> Option<i64> {
    let exponent: i64 = text.parse().ok()?;
    (-MOST_EXPONENT..=MOST_EXPONENT).contains(&exponent).then_some(exponent)
}

/// A whole number from its digits.
pub(super) fn whole(text: &str) -> Option<i128> {
    // Nearly all have neither point nor exponent.
    text.parse::<i64>().map(i128::from).ok().or_else(|| Decimal::of(text)?.whole())
}

/// A floating-point number from its digits, or from PostgreSQL's words for what JSON has no digits for; none where it has no finite
/// value of the type.
pub(super) fn double(text: &str) -> Option<f64> {
    special(text).or_else(|| finite(text).filter(|number: &f64| number.is_finite()))
}

/// The same of single precision.
pub(super) fn single(text: &str) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "infinities and NaN stay what they are")]
    let special = special(text).map(|number| number as f32);
    special.or_else(|| finite(text).filter(|number: &f32| number.is_finite()))
}

fn special(text: &str) -> Option<f64> {
    Some(match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    })
}

/// Rust reads more words than JSON has: `inf`, for example.
fn finite<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_in_each_way_of_writing_them() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("-0.00", 0),
            ("5.00", 5),
            ("1e3", 1_000),
            ("120E-1", 12),
            ("9223372036854775808", i128::from(i64::MAX) + 1),
            ("-9223372036854775808", i128::from(i64::MIN)),
            ("18446744073709551615", i128::from(u64::MAX)),
        ] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in ["1.5", "1e-1", "1e39", "1e999999999999", "NaN", "", "-", "1.", ".5", "0x1", "1_0", "١"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact_and_keep_to_scale_and_precision() {
        let of = |text: &str, scale, precision| Decimal::of(text).expect("a number").unscaled(scale, precision);
        assert_eq!(of("1.10", 2, 5), Ok(vec![110]));
        assert_eq!(of("-1.28", 2, 5), Ok(vec![0x80]));
        assert_eq!(of("1.28", 2, 5), Ok(vec![0, 0x80]));
        assert_eq!(of("0.00", 2, 1), Ok(vec![0]));
        assert_eq!(of("-0.01", 2, 1), Ok(vec![0xff]));
        assert_eq!(of("1.100", 1, 5), Ok(vec![11]), "zeros at the end are no digits");
        assert_eq!(of("1e2", 2, 5), Ok(vec![0x27, 0x10]));
        assert_eq!(of("1e+2", 2, 5), Ok(vec![0x27, 0x10]));
        assert_eq!(of("12345678901234567890.123456789", 9, 29).map(|bytes| bytes.len()), Ok(12));
        assert_eq!(of("1.101", 2, 5), Err(Excess::Scale(3)));
        assert_eq!(of("1e-5", 2, 5), Err(Excess::Scale(5)));
        assert_eq!(of("1000", 2, 5), Err(Excess::Precision(6)));
        assert_eq!(of("99999.99", 2, 7).map(|bytes| bytes.len()), Ok(4));
        assert_eq!(of("1e200000", 0, 100), Err(Excess::Precision(200_001)));
        for text in ["NaN", "Infinity", "1e200001", "1e-200001", "1e+-5", "1e++5", "1e", "+1", "1,5", " 1"] {
            assert_eq!(Decimal::of(text), None, "{text}");
        }
    }

    #[test]
    fn largest_number_of_postgresql_takes_no_time() {
        let text = "9".repeat(131_072) + "." + &"9".repeat(16_383);
        let begun = std::time::Instant::now();
        let bytes = Decimal::of(&text).expect("a number").unscaled(16_383, 147_455).expect("fits");
        assert!(bytes.len() > 60_000 && begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn floating_point_numbers_are_finite_unless_the_row_says_otherwise() {
        assert_eq!((double("1.5e3"), single("-0.1")), (Some(1500.0), Some(-0.1)));
        assert_eq!((double("1e999"), single("1e39")), (None, None));
        assert_eq!((double("Infinity"), single("-Infinity")), (Some(f64::INFINITY), Some(f32::NEG_INFINITY)));
        assert!(double("NaN").is_some_and(f64::is_nan) && single("NaN").is_some_and(f32::is_nan));
        for text in ["inf", "nan", "infinity", "", "1.5.", "0x1p3", "1e"] {
            assert_eq!((double(text), single(text)), (None, None), "{text}");
        }
    }
}
