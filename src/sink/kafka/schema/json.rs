//! JSON that is read as far as a schema asks for it, with the digits of its numbers as they are.
//!
//! serde_json reads each level when it is asked for; a value that no field takes is only passed over.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Json<'a>(&'a str);

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

impl Kind {
    /// For people.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

impl<'a> Json<'a> {
    /// None for what is no JSON.
    pub(super) fn of(payload: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok().map(Self::raw)
    }

    fn raw(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }

    pub(super) fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'n') => Kind::Null,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'"') => Kind::Text,
            Some(b'[') => Kind::List,
            Some(b'{') => Kind::Object,
            _ => Kind::Number,
        }
    }

    /// As it is written.
    pub(super) const fn source(self) -> &'a str {
        self.0
    }

    pub(super) fn boolean(self) -> Option<bool> {
        (self.kind() == Kind::Boolean).then_some(self.0 == "true")
    }

    /// A number's digits.
    pub(super) fn number(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then_some(self.0)
    }

    /// None for what is no text, or has half of a surrogate pair.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(self.0).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// A list's elements.
    pub(super) fn elements(self) -> Option<Vec<Self>> {
        let elements: Vec<&RawValue> = serde_json::from_str(self.0).ok()?;
        Some(elements.into_iter().map(Self::raw).collect())
    }

    /// An object's members in their order; a name may come more than once, and the last one counts.
    pub(super) fn members(self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        serde_json::from_str::<Members<'a>>(self.0).ok().map(|members| members.0)
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfObject)
    }
}

struct OfObject;

impl<'de> Visitor<'de> for OfObject {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            members.push((name, Json::raw(map.next_value()?)));
        }
        Ok(Members(members))
    }
}

struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfName).map(Self)
    }
}

struct OfName;

impl<'de> Visitor<'de> for OfName {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Json<'_> {
        Json::of(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn values_are_what_they_are_written_as() {
        let kinds = ["null", "true", " 1e-7 ", "\"a\"", "[1]", "{}"].map(|text| of(text).kind());
        assert_eq!(kinds, [Kind::Null, Kind::Boolean, Kind::Number, Kind::Text, Kind::List, Kind::Object]);
        assert_eq!(of(" 1.10000000000000000000001\n").number(), Some("1.10000000000000000000001"));
        assert_eq!(of("\"a\\u00fc\\n\\\"\"").text().as_deref(), Some("aü\n\""));
        assert_eq!(of("\"\\ud800\"").text(), None, "half of a pair");
        assert_eq!((of("false").boolean(), of("\"false\"").boolean()), (Some(false), None));
        assert_eq!((of("1").text(), of("\"1\"").number()), (None, None));
    }

    #[test]
    fn members_and_elements_come_in_their_order() {
        let object = of("{ \"a\" : [ 1 , {\"b\":null} ], \"\\u0061\": 2}");
        let members = object.members().expect("an object");
        let names: Vec<_> = members.iter().map(|(name, value)| (name.as_ref(), value.source())).collect();
        assert_eq!(names, [("a", "[ 1 , {\"b\":null} ]"), ("a", "2")]);
        let elements = members[0].1.elements().expect("a list");
        assert_eq!(elements.iter().map(|value| value.source()).collect::<Vec<_>>(), ["1", "{\"b\":null}"]);
        assert!(of("1").members().is_none() && of("{}").elements().is_none());
    }

    #[test]
    fn what_is_no_json_is_none_and_depth_takes_no_stack() {
        for text in ["", "nul", "{\"a\":}", "[1", "'a'", "\"a\u{1}\"", "1 2", "\u{feff}1"] {
            assert_eq!(Json::of(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Json::of(b"\"\xff\""), None);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(of(&deep).elements().map(|elements| elements.len()), Some(1));
    }
}
