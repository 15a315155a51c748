//! Bytes from JSON texts: `\x` and hexadecimal digits, as PostgreSQL writes a `bytea`, or base64. No base64 begins with a backslash.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

const EITHER: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, EITHER);
const OF_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, EITHER);

/// None for what is neither.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => hex(digits),
        None if text.contains(['-', '_']) => OF_URLS.decode(text).ok(),
        None => BASE64.decode(text).ok(),
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_postgresql_and_of_base64_are_told_apart() {
        assert_eq!(bytes("\\x00fF0a"), Some(vec![0, 255, 10]));
        assert_eq!((bytes("\\x"), bytes("")), (Some(Vec::new()), Some(Vec::new())));
        for text in ["AP8K", "//79", "__79", "AA==", "AA"] {
            assert!(bytes(text).is_some(), "{text}");
        }
        assert_eq!(bytes("__79"), bytes("//79"));
        for text in ["\\x0", "\\x0g", "\\xä", "a", "AP8K=", "AP 8K", "ä", "_/79", "\\\\x00"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
