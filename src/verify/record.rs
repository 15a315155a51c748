//! Where a record of a topic has its id and its `created_at`.

use std::borrow::Cow;
use std::str::FromStr;

use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use serde_json::Value;

use crate::position::Timestamp;
use crate::source::shape::IdType;

/// A place in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The header of this name.
    Header(String),
    /// The value at this path of the JSON payload.
    Payload(Vec<String>),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fix = "write header:NAME, or payload:$.name.name for a value of a JSON payload";
        let (kind, rest) = text.split_once(':').ok_or_else(|| format!("{text:?} is no place in a record: {fix}"))?;
        match kind {
            "header" if !rest.is_empty() => Ok(Self::Header(rest.to_owned())),
            "payload" => {
                let path = rest
                    .strip_prefix("$.")
                    .ok_or_else(|| format!("the path {rest:?} does not begin with $.: {fix}"))?;
                let names: Vec<String> = path.split('.').map(str::to_owned).collect();
                if names.iter().any(|name| name.is_empty() || name.contains(['[', ']', '*'])) {
                    return Err(format!("the path {rest:?} is not of names alone: {fix}"));
                }
                Ok(Self::Payload(names))
            }
            _ => Err(format!("{kind:?} is no place in a record: {fix}")),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Payload(path) => write!(f, "payload:$.{}", path.join(".")),
        }
    }
}

/// What to read of each record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where the id is.
    pub id: Place,
    /// Where `created_at` is; the record's own timestamp stands for it otherwise.
    pub created_at: Option<Place>,
    /// A header and its values: records with another one are not of interest.
    pub relay: Option<(String, Vec<String>)>,
    /// The type of the table's ids: texts of UUIDs are compared in small letters.
    pub ids: IdType,
}

/// A record, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Its id; none if it has none.
    pub id: Option<Cow<'a, str>>,
    /// Its row's `created_at`, if it says that.
    pub created_at: Option<Timestamp>,
    /// An operator had it sent again.
    pub replayed: bool,
    /// It is marked as late: its place in the order is not kept.
    pub late: bool,
}

impl Reading {
    /// Reads a record; none if it is another relay's.
    #[must_use]
    pub fn see<'a>(&self, message: &'a BorrowedMessage<'_>) -> Option<Seen<'a>> {
        let mut seen = Seen { id: None, created_at: None, replayed: false, late: false };
        let mut of_relay = self.relay.is_none();
        for header in message.headers().iter().flat_map(|headers| headers.iter()) {
            let Some(text) = header.value.and_then(|bytes| std::str::from_utf8(bytes).ok()) else { continue };
            if self.relay.as_ref().is_some_and(|(name, _)| name == header.key) {
                of_relay = self.relay.as_ref().is_some_and(|(_, names)| names.iter().any(|name| name == text));
            }
            if self.id.is_header(header.key) {
                seen.id = Some(Cow::Owned(text.to_owned()));
            }
            if self.created_at.as_ref().is_some_and(|place| place.is_header(header.key)) {
                seen.created_at = instant(text);
            }
            seen.replayed |= header.key == "replayed" && text == "true";
            seen.late |= header.key == "late" && text == "true";
        }
        if !of_relay {
            return None;
        }
        self.see_payload(message.payload().unwrap_or_default(), &mut seen);
        if self.ids == IdType::Uuid
            && let Some(id) = &mut seen.id
            && id.bytes().any(|byte| byte.is_ascii_uppercase())
        {
            id.to_mut().make_ascii_lowercase();
        }
        Some(seen)
    }

    fn see_payload(&self, payload: &[u8], seen: &mut Seen<'_>) {
        let created_at = self.created_at.as_ref().and_then(Place::path);
        if self.id.path().is_none() && created_at.is_none() {
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(payload) else { return };
        if let Some(path) = self.id.path() {
            seen.id = at(&value, path).map(Cow::Owned);
        }
        if let Some(path) = created_at {
            seen.created_at = at(&value, path).and_then(|text| instant(&text));
        }
    }
}

impl Place {
    fn is_header(&self, name: &str) -> bool {
        matches!(self, Self::Header(own) if own == name)
    }

    fn path(&self) -> Option<&[String]> {
        match self {
            Self::Payload(path) => Some(path),
            Self::Header(_) => None,
        }
    }
}

/// The text at a path. A document that is a string in another one is read as what it is.
fn at(value: &Value, path: &[String]) -> Option<String> {
    let Some((name, rest)) = path.split_first() else {
        return match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
    };
    match value {
        Value::Object(fields) => at(fields.get(name)?, rest),
        Value::String(text) => at(&serde_json::from_str(text).ok()?, path),
        _ => None,
    }
}

/// An instant as publishers write it: RFC 3339, the relay's own text of any year, PostgreSQL's own text, or a number since 1970 in
/// seconds, milli- or microseconds.
fn instant(text: &str) -> Option<Timestamp> {
    if let Ok(number) = text.parse::<i64>() {
        let factor = match number.unsigned_abs() {
            0..100_000_000_000 => 1_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000,
            _ => 1,
        };
        return number.checked_mul(factor).map(Timestamp::from_unix_micros);
    }
    if let Some(at) = Timestamp::parse_noted(text) {
        return Some(at);
    }
    let mut text = text.replacen(' ', "T", 1);
    let zone = text.rfind(['+', '-', 'Z']).filter(|at| *at > 10).map(|at| text.len() - at);
    match zone {
        None => text.push('Z'),
        Some(3) => text.push_str(":00"),
        Some(_) => {}
    }
    Timestamp::parse_rfc3339(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: verify.places
    #[test]
    fn places_are_read_and_wrong_ones_say_what_to_write() {
        for text in ["header:id", "payload:$.id", "payload:$.payload.after.id"] {
            assert_eq!(text.parse::<Place>().map(|place| place.to_string()).as_deref(), Ok(text));
        }
        for text in ["id", "header:", "payload:id", "payload:$.a[0]", "payload:$..a", "key:x"] {
            assert!(text.parse::<Place>().is_err_and(|error| error.contains("write header:NAME")), "{text}");
        }
    }

    #[test]
    fn values_are_found_in_documents_and_in_documents_within() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let value = serde_json::json!({ "id": 7, "payload": "{\"after\":{\"id\":\"a\"}}", "no": null });
        assert_eq!(at(&value, &path("id")).as_deref(), Some("7"));
        assert_eq!(at(&value, &path("payload.after.id")).as_deref(), Some("a"));
        assert_eq!(at(&value, &path("no")), None);
        assert_eq!(at(&value, &path("id.more")), None);
    }

    #[test]
    fn instants_of_other_publishers_are_understood() {
        let wanted = Timestamp::parse_rfc3339("2026-11-21T08:00:00.123Z").expect("valid");
        for text in [
            "2026-11-21T08:00:00.123Z",
            "2026-11-21 08:00:00.123+00",
            "2026-11-21 09:00:00.123+01",
            "2026-11-21 08:00:00.123",
            "1795248000123",
            "1795248000123000",
        ] {
            assert_eq!(instant(text), Some(wanted), "{text}");
        }
        assert_eq!(instant("1795248000").map(Timestamp::unix_micros), Some(1_795_248_000_000_000));
        let far = Timestamp::from_pg_micros(252_455_616_000_000_000);
        assert_eq!((instant(&far.to_string()), instant("infinity")), (Some(far), Some(Timestamp::INFINITY)));
        assert_eq!(instant("soon"), None);
    }
}
