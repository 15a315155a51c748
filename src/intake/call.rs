//! The body of `POST /v1/requests`: every member of the right type, none unknown, none twice.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::Fault;
use crate::position::Timestamp;

/// The members that a body may have.
const MEMBERS: [&str; 8] =
    ["dedupe_key", "user_id", "template", "parameters", "request_id", "not_before", "dedupe_for", "retry_failed"];
/// As in `outbox.make_request`.
const KEY_BYTES: usize = 1024;
/// The most levels of `parameters`. PostgreSQL reads more of them with its default `max_stack_depth`.
const LEVELS: usize = 2_000;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) dedupe_key: Option<String>,
    pub(super) user_id: String,
    pub(super) template: String,
    /// JSON as it came, so that no number loses a digit.
    pub(super) parameters: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) not_before: Option<Timestamp>,
    pub(super) dedupe_for: Option<Duration>,
    pub(super) retry_failed: bool,
}

impl Call {
    /// Reads a body.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Vec<Fault>> {
        let members: Members = serde_json::from_slice(body)
            .map_err(|error| vec![Fault { pointer: String::new(), detail: format!("not a JSON object: {error}") }])?;
        let mut reader = Reader { faults: members.strangers(), members: &members };
        let dedupe_key = reader.read("dedupe_key", key);
        let user_id = reader.require("user_id", user);
        let template = reader.require("template", text);
        let parameters = reader.read("parameters", object);
        let request_id = reader.read("request_id", uuid);
        let not_before = reader.read("not_before", instant);
        let dedupe_for = reader.read("dedupe_for", duration);
        let retry_failed = reader.read("retry_failed", boolean);
        for name in ["dedupe_for", "retry_failed"] {
            if members.get(name).is_some() && members.get("dedupe_key").is_none() {
                reader.fault(name, "means something together with dedupe_key only");
            }
        }
        match (user_id, template) {
            (Some(user_id), Some(template)) if reader.faults.is_empty() => Ok(Self {
                dedupe_key,
                user_id,
                template,
                parameters,
                request_id,
                not_before,
                dedupe_for,
                retry_failed: retry_failed.unwrap_or(false),
            }),
            _ => Err(reader.faults),
        }
    }
}

/// Whether a text is a UUID in its usual form.
pub(super) fn is_uuid(text: &str) -> bool {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, c): (usize, char)| if is_hyphen(at) { c == '-' } else { c.is_ascii_hexdigit() };
    text.len() == 36 && text.chars().enumerate().all(fits)
}

/// What is wrong with a text as a deduplication key.
pub(super) fn wrong_key(key: &str) -> Option<String> {
    match key.len() {
        1..=KEY_BYTES if !key.contains('\0') => None,
        1..=KEY_BYTES => Some("contains a NUL character".to_owned()),
        bytes => Some(format!("has {bytes} bytes, 1 to {KEY_BYTES} are possible")),
    }
}

/// An object's members in their order, doubles included.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| &**value)
    }

    /// Members that there are not, and those that stand there twice.
    fn strangers(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (at, (name, _)) in self.0.iter().enumerate() {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            if !MEMBERS.contains(&name.as_str()) {
                let detail = format!("no such member; there are {}", MEMBERS.join(", "));
                faults.push(Fault { pointer, detail });
            } else if self.0[..at].iter().any(|(other, _)| other == name) {
                faults.push(Fault { pointer, detail: "stands there twice".to_owned() });
            }
        }
        faults
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// Reads member by member and keeps what is wrong.
struct Reader<'a> {
    members: &'a Members,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, name: &str, detail: impl Into<String>) {
        self.faults.push(Fault { pointer: format!("/{name}"), detail: detail.into() });
    }

    fn read<T>(&mut self, name: &str, convert: impl Fn(&RawValue) -> Result<T, String>) -> Option<T> {
        let members = self.members;
        match convert(members.get(name)?) {
            Ok(value) => Some(value),
            Err(detail) => {
                self.fault(name, detail);
                None
            }
        }
    }

    fn require<T>(&mut self, name: &str, convert: impl Fn(&RawValue) -> Result<T, String>) -> Option<T> {
        if self.members.get(name).is_none() {
            self.fault(name, "is missing");
        }
        self.read(name, convert)
    }
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn wanted(wanted: &str, value: &RawValue) -> String {
    format!("{wanted} is needed, this is {}", kind(value))
}

fn string(value: &RawValue) -> Result<String, String> {
    if kind(value) != "a string" {
        return Err(wanted("a string", value));
    }
    serde_json::from_str(value.get()).map_err(|error| format!("not a string: {error}"))
}

fn text(value: &RawValue) -> Result<String, String> {
    match string(value)? {
        text if text.is_empty() => Err("is empty".to_owned()),
        text if text.contains('\0') => Err("contains a NUL character".to_owned()),
        text => Ok(text),
    }
}

fn key(value: &RawValue) -> Result<String, String> {
    let key = string(value)?;
    wrong_key(&key).map_or(Ok(key), Err)
}

fn user(value: &RawValue) -> Result<String, String> {
    let user = text(value)?;
    wrong_key(&user).map_or(Ok(user), Err)
}

fn object(value: &RawValue) -> Result<String, String> {
    match value.get() {
        _ if kind(value) != "an object" => Err(wanted("an object", value)),
        json if levels(json) > LEVELS => Err(format!("has more than {LEVELS} levels")),
        json => Ok(json.to_owned()),
    }
}

/// How deep sound JSON goes: objects and arrays, the outermost included.
fn levels(json: &str) -> usize {
    let (mut level, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_string => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn uuid(value: &RawValue) -> Result<String, String> {
    let text = string(value)?;
    if is_uuid(&text) {
        Ok(text)
    } else {
        Err("is no UUID, for example 01989b3c-8c1e-7d4f-9a53-1f0e6a1d2b3c".to_owned())
    }
}

fn instant(value: &RawValue) -> Result<Timestamp, String> {
    let text = string(value)?;
    Timestamp::parse_rfc3339(&text).map_err(|_| "is no RFC 3339 instant, for example 2026-11-21T08:00:00Z".to_owned())
}

fn boolean(value: &RawValue) -> Result<bool, String> {
    serde_json::from_str(value.get()).map_err(|_| wanted("a boolean", value))
}

/// A whole number and one unit.
fn duration(value: &RawValue) -> Result<Duration, String> {
    let text = string(value)?;
    let wrong = || "is no duration: a whole number from 1 to 9999 and s, m, h or d, for example \"24h\"".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let plain =
        (1..=4).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit()) && !number.starts_with('0');
    let number: u32 = Some(number).filter(|_| plain).and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    Ok(Duration::from_secs(u64::from(number) * unit))
}

#[cfg(test)]
mod tests;
