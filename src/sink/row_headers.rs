//! Headers that a row of `outbox.message` brings along: a JSON object, one header for each member.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Class, Failure};

/// The column.
pub(super) const COLUMN: &str = "headers";

/// So many headers may a row bring along.
const MOST: usize = 100;
/// So many bytes may their names and values have together: 64 KiB.
const MOST_BYTES: usize = 64 * 1024;

/// Names and values, in the order of the names; a member that is null has no value.
///
/// # Errors
/// When the value is no object, or has too many members or bytes: the row is poison.
pub(super) fn of(column: Option<&[u8]>) -> Result<Vec<(String, Option<String>)>, Failure> {
    let Some(text) = column else { return Ok(Vec::new()) };
    // Raw, because numbers keep the digits that PostgreSQL gives.
    let object: Option<BTreeMap<String, &RawValue>> = serde_json::from_slice(text).map_err(|_| {
        let hint = "Write an object, for example {\"event\": \"OrderPaid\"}, or NULL.";
        Failure::of(Class::Poison, "invalid_header", "The row's headers are no JSON object".to_owned(), hint)
    })?;
    let value = |value: &RawValue| match value.get() {
        "null" => None,
        raw => Some(serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())),
    };
    let object = object.unwrap_or_default();
    if object.len() > MOST {
        let message = format!("The row's headers have {} members; at most {MOST} are allowed", object.len());
        return Err(too_large(message));
    }
    let headers: Vec<_> = object.into_iter().map(|(name, member)| (name, value(member))).collect();
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len)).sum();
    if bytes > MOST_BYTES {
        return Err(too_large(format!(
            "The row's headers have {bytes} bytes in names and values; at most {MOST_BYTES} are allowed"
        )));
    }
    Ok(headers)
}

fn too_large(message: String) -> Failure {
    let hint = "Write fewer or shorter members into `headers`, and the rest into the payload.";
    Failure::of(Class::Poison, "invalid_header", message, hint)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn headers_above_a_limit_are_poison_that_names_it() {
        let members = |count: usize| {
            let members: Vec<_> = (0..count).map(|number| format!("\"h{number}\": 1")).collect();
            format!("{{{}}}", members.join(", "))
        };
        let long = |bytes: usize| format!(r#"{{"name": "{}"}}"#, "x".repeat(bytes - 4));
        for fits in [members(100), long(65_536)] {
            assert!(of(Some(fits.as_bytes())).is_ok(), "{} bytes", fits.len());
        }
        for (wrong, message) in [
            (members(101), "The row's headers have 101 members; at most 100 are allowed"),
            (long(65_537), "The row's headers have 65537 bytes in names and values; at most 65536 are allowed"),
        ] {
            let failure = of(Some(wrong.as_bytes())).expect_err("poison");
            assert_eq!((failure.code.as_str(), failure.message.as_str()), ("invalid_header", message));
        }
    }

    #[test]
    fn members_become_headers_and_other_values_are_poison() {
        let headers = of(Some(br#"{"a": "x\ny", "b": 1.50, "c": null, "d": [true]}"#)).expect("an object");
        let text = |text: &str| Some(text.to_owned());
        let expected = [("a", text("x\ny")), ("b", text("1.50")), ("c", None), ("d", text("[true]"))];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!((of(None).expect("none"), of(Some(b"null")).expect("none")), (Vec::new(), Vec::new()));
        for wrong in ["[]", "1", "\"x\"", "{"] {
            assert_eq!(of(Some(wrong.as_bytes())).expect_err("poison").code, "invalid_header");
        }
    }
}
