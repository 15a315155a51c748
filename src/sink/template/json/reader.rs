//! JSON of bounded depth and size, read once.
//!
//! serde_json gives a number's digits only for a document that it has passed over before, so that each level would be read
//! again. Here it reads the strings and judges the numbers; what joins them is read by hand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};
use serde::de::IgnoredAny;

/// The most lists and objects inside each other, serde_json's own limit: each level takes a part of the thread's stack.
pub(in super::super) const DEEPEST: usize = 128;
/// The most bytes of JSON that one template reads for one row: twice what a schedule's query may give.
pub(in super::super) const LONGEST: usize = 2 << 20;

/// Why a text is not read as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum NotJson {
    /// It is something else.
    #[error("no JSON")]
    NoJson,
    /// More levels than [`DEEPEST`].
    #[error("{levels} levels")]
    TooDeep { levels: usize },
    /// More bytes than [`LONGEST`].
    #[error("{bytes} bytes")]
    TooLarge { bytes: usize },
}

/// A number that would lose a digit as a number of ours: printed as it is in the JSON.
#[derive(Debug)]
struct Digits(String);

impl Object for Digits {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a document; `bytes` is how much the template reads of this row with it.
pub(super) fn read(text: &str, bytes: usize) -> Result<Value, NotJson> {
    if bytes > LONGEST {
        return Err(NotJson::TooLarge { bytes });
    }
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    if reader.peek().is_none() { Ok(value) } else { Err(NotJson::NoJson) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.at += space.unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.take(byte) { Ok(()) } else { Err(NotJson::NoJson) }
    }

    /// A value inside of `level` lists and objects.
    fn value(&mut self, level: usize) -> Result<Value, NotJson> {
        let first = self.peek().ok_or(NotJson::NoJson)?;
        if level == DEEPEST && matches!(first, b'[' | b'{') {
            return Err(NotJson::TooDeep { levels: depth(self.text) });
        }
        match first {
            b'[' => self.list(level + 1),
            b'{' => self.object(level + 1),
            b'"' => self.string().map(Value::from),
            _ => self.word(),
        }
    }

    fn list(&mut self, level: usize) -> Result<Value, NotJson> {
        let mut elements = Vec::new();
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(Value::from(elements));
        }
        loop {
            elements.push(self.value(level)?);
            if !self.take(b',') {
                self.expect(b']')?;
                return Ok(Value::from(elements));
            }
        }
    }

    /// Sorted by name; of equal names the last one counts.
    fn object(&mut self, level: usize) -> Result<Value, NotJson> {
        let mut members = BTreeMap::new();
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(Value::from_pairs(members));
        }
        loop {
            self.peek();
            let name = self.string()?;
            self.expect(b':')?;
            members.insert(name, self.value(level)?);
            if !self.take(b',') {
                self.expect(b'}')?;
                return Ok(Value::from_pairs(members));
            }
        }
    }

    fn string(&mut self) -> Result<String, NotJson> {
        let rest = &self.text[self.at..];
        let end = string_end(rest.as_bytes()).ok_or(NotJson::NoJson)?;
        self.at += end;
        serde_json::from_str(&rest[..end]).map_err(|_| NotJson::NoJson)
    }

    /// `true`, `false`, `null` or a number.
    fn word(&mut self) -> Result<Value, NotJson> {
        let rest: &'a str = &self.text[self.at..];
        let end = rest.find([',', ']', '}', ':', '"', '[', '{', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        self.at += end;
        let word = &rest[..end];
        match word {
            "true" | "false" => return Ok(Value::from(word == "true")),
            "null" => return Ok(Value::from(())),
            _ => serde_json::from_str::<IgnoredAny>(word).map_err(|_| NotJson::NoJson)?,
        };
        Ok(match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) if number.to_string() == word => Value::from(number),
            _ => Value::from_object(Digits(word.to_owned())),
        })
    }
}

/// Where the string ends that these bytes begin with.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = (bytes.first() == Some(&b'"')).then_some(1)?;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The most lists and objects inside each other, without a stack.
fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut level, mut deepest) = (0, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'[' | b'{' => level += 1,
            b']' | b'}' => level = level.saturating_sub(1),
            b'"' => at += string_end(&bytes[at..]).unwrap_or(bytes.len()) - 1,
            _ => {}
        }
        deepest = deepest.max(level);
        at += 1;
    }
    deepest
}
