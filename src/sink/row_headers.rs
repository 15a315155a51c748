//! Headers that a row of `outbox.message` brings along: a JSON object, one header for each member.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Class, Failure};

/// The column.
pub(super) const COLUMN: &str = "headers";

/// Names and values, in the order of the names; a member that is null has no value.
///
/// # Errors
/// When the value is no object: the row is poison.
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
    Ok(object.unwrap_or_default().into_iter().map(|(name, member)| (name, value(member))).collect())
}

#[cfg(test)]
mod tests {
    use super::of;

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
