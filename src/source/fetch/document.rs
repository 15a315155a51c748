//! A JSON object of columns, byte for byte as PostgreSQL's `row_to_json` makes it, from their binary values; or with values as Debezium
//! makes them.
//!
//! Pure. `row_to_json` looks each column's type up for each row, which takes a server more than all the rest of reading
//! it. Where every column has a type of [`Form`], the object is made here; for any other table PostgreSQL makes it. The
//! sources for what must come out are PostgreSQL's own: `datum_to_json`, `escape_json` and `JsonEncodeDateTime` in
//! `src/backend/utils/adt/json.c`, `numeric_out`, `EncodeDateTime` with `USE_XSD_DATES`; and the test that compares the
//! records of both for every type.

use tokio_postgres::types::Type;

use self::instant::Instant;
use crate::position::PAIRS;

mod debezium;
mod instant;

pub(super) use debezium::Style;

/// How a value of a type is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bool,
    SmallInt,
    Integer,
    BigInt,
    Numeric,
    Text,
    Uuid,
    Date,
    Timestamp,
    TimestampTz,
    Json,
    Jsonb,
    Debezium(debezium::Form),
}

impl Form {
    /// None for a type whose JSON is not made here.
    fn of(oid: u32, modifier: i32, style: Style) -> Option<Self> {
        let of = Type::from_oid(oid)?;
        if style == Style::Debezium
            && let Some(form) = debezium::Form::of(&of, modifier)
        {
            return Some(Self::Debezium(form));
        }
        Some(match of {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::SmallInt,
            Type::INT4 => Self::Integer,
            Type::INT8 => Self::BigInt,
            Type::NUMERIC => Self::Numeric,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR => Self::Text,
            Type::UUID => Self::Uuid,
            Type::DATE => Self::Date,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            Type::JSON => Self::Json,
            Type::JSONB => Self::Jsonb,
            _ => return None,
        })
    }
}

impl Form {
    /// Whether its bytes become a string, with what must be escaped.
    const fn is_string(self) -> bool {
        matches!(self, Self::Text | Self::Debezium(debezium::Form::Json | debezium::Form::Jsonb))
    }
}

/// Whether an object with a column of the type with this oid can be made here.
pub(super) fn is_made_here(oid: u32, style: Style) -> bool {
    Form::of(oid, -1, style).is_some()
}

/// A byte takes at most so many: `\u0001`.
const ESCAPED: usize = 6;

/// PostgreSQL makes no text that is longer (`MaxAllocSize`).
const MOST_BYTES: usize = 0x3fff_ffff;

/// Why an object cannot be made, with the column's name as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A value is not what its type says.
    #[error("the value of column {0} is not in the binary form of its type")]
    Value(String),
    /// It would be longer than PostgreSQL would make it.
    #[error("with column {0} the row's JSON is longer than 1 GiB, which PostgreSQL would refuse, too")]
    Long(String),
}

/// The columns of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document(Vec<(Vec<u8>, Form)>);

impl Document {
    /// Of columns by name, type and its modifier; none when one of them has a type that is not made here.
    pub(super) fn new<'a>(columns: impl Iterator<Item = (&'a str, u32, i32)>, style: Style) -> Option<Self> {
        let mut first = true;
        let column = |(name, oid, modifier): (&str, u32, i32)| {
            let mut key = if std::mem::take(&mut first) { b"{".to_vec() } else { b",".to_vec() };
            string(name.as_bytes(), &mut key);
            key.push(b':');
            Some((key, Form::of(oid, modifier, style)?))
        };
        columns.map(column).collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty()).map(Self)
    }

    /// Appends the object to `out`; `value` gives the binary value of the column with a number, none for NULL. Texts that would make
    /// it longer than `most` are not written: answers how many bytes these would have taken. The object is worthless then.
    ///
    /// # Errors
    /// What `value` fails with, and [`Malformed`] values.
    pub(super) fn write<'a, E: From<Malformed>>(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<&'a [u8]>, E>,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, E> {
        let (begin, mut unwritten) = (out.len(), 0);
        for (number, (key, form)) in self.0.iter().enumerate() {
            // Behind the brace or the comma, before the colon.
            let name = || String::from_utf8_lossy(&key[1..key.len() - 1]).into_owned();
            out.extend_from_slice(key);
            match value(number)? {
                None => out.extend_from_slice(b"null"),
                Some(bytes)
                    if form.is_string()
                        && out.len() - begin + ESCAPED * bytes.len() > most
                        && out.len() - begin + string_length(bytes) > most =>
                {
                    unwritten += string_length(bytes);
                }
                Some(bytes) => json(*form, bytes, out).ok_or_else(|| Malformed::Value(name()))?,
            }
            if out.len() - begin + unwritten > MOST_BYTES {
                return Err(Malformed::Long(name()).into());
            }
        }
        out.push(b'}');
        Ok(unwritten)
    }
}

/// One value; none when it is malformed.
fn json(form: Form, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match form {
        Form::Bool => out.extend_from_slice(match bytes {
            [0] => b"false",
            [_] => b"true",
            _ => return None,
        }),
        Form::SmallInt => serde_json::to_writer(out, &i16::from_be_bytes(bytes.try_into().ok()?)).ok()?,
        Form::Integer => serde_json::to_writer(out, &i32::from_be_bytes(bytes.try_into().ok()?)).ok()?,
        Form::BigInt => serde_json::to_writer(out, &i64::from_be_bytes(bytes.try_into().ok()?)).ok()?,
        Form::Numeric => numeric(bytes, out)?,
        // Byte for byte, as `escape_json` takes it: what is stored need not be well formed.
        Form::Text => string(bytes, out),
        Form::Uuid => uuid(bytes.try_into().ok()?, out),
        Form::Date => Instant::of_date(i32::from_be_bytes(bytes.try_into().ok()?)).write("", None, out),
        // The sessions of a relay have the time zone UTC.
        Form::TimestampTz => Instant::of_micros(i64::from_be_bytes(bytes.try_into().ok()?))?.write("+00:00", None, out),
        Form::Timestamp => Instant::of_micros(i64::from_be_bytes(bytes.try_into().ok()?))?.write("", None, out),
        Form::Json => out.extend_from_slice(bytes),
        // The first byte is the version of the binary form.
        Form::Jsonb => out.extend_from_slice(bytes.strip_prefix(&[1])?),
        Form::Debezium(form) => debezium::value(form, bytes, out)?,
    }
    Some(())
}

/// So many bytes are looked at together: without an early end the compiler compares all of them at once.
const CHUNK: usize = 32;

/// Whether `escape_json` writes a byte in another way.
const fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// A text with quotes.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut written = 0;
    for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
        if chunk.iter().fold(false, |found, byte| found | is_escaped(*byte)) {
            for (at, byte) in (number * CHUNK..).zip(chunk).filter(|(_, byte)| is_escaped(**byte)) {
                out.extend_from_slice(&bytes[written..at]);
                escaped(*byte, out);
                written = at + 1;
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// How long [`string`] makes a text.
fn string_length(bytes: &[u8]) -> usize {
    let more = |byte: &u8| if short(*byte).is_some() { 1 } else { ESCAPED - 1 };
    2 + bytes.len() + bytes.iter().filter(|byte| is_escaped(**byte)).map(more).sum::<usize>()
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    match short(byte) {
        Some(short) => out.extend_from_slice(&[b'\\', short]),
        None => {
            out.extend_from_slice(b"\\u00");
            hex(byte, out);
        }
    }
}

/// What stands behind the backslash of an escaped byte, if that is one letter.
const fn short(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return None,
    })
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

fn uuid(bytes: [u8; 16], out: &mut Vec<u8>) {
    out.push(b'"');
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(byte, out);
    }
    out.push(b'"');
}

/// Digits to the base of 10,000; see `numeric_send` and `get_str_from_var`.
fn numeric(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let word = |n: usize| Some(u16::from_be_bytes([*bytes.get(2 * n)?, *bytes.get(2 * n + 1)?]));
    let (count, weight, sign, scale) = (usize::from(word(0)?), i32::from(word(1)?.cast_signed()), word(2)?, word(3)?);
    let special: &[u8] = match sign {
        0x0000 => b"",
        0x4000 => b"-",
        0xC000 => b"\"NaN\"",
        0xD000 => b"\"Infinity\"",
        0xF000 => b"\"-Infinity\"",
        _ => return None,
    };
    out.extend_from_slice(special);
    if special.len() > 1 {
        return Some(());
    }
    const HEADER: usize = 4;
    if bytes.len() != 2 * (HEADER + count) || (0..count).any(|n| word(HEADER + n).is_none_or(|digit| digit > 9_999)) {
        return None;
    }
    let digit = |n: i32| usize::try_from(n).ok().and_then(|n| word(HEADER + n)).unwrap_or(0);
    // The first digit without zeros before it.
    serde_json::to_writer(&mut *out, &if weight < 0 { 0 } else { digit(0) }).ok()?;
    for n in 1..=weight {
        four(digit(n), out);
    }
    if scale > 0 {
        out.push(b'.');
        let end = out.len() + usize::from(scale);
        let mut n = weight + 1;
        while out.len() < end {
            four(digit(n), out);
            n += 1;
        }
        out.truncate(end);
    }
    Some(())
}

fn four(digit: u16, out: &mut Vec<u8>) {
    let digit = usize::from(digit);
    out.extend_from_slice(&PAIRS[digit / 100]);
    out.extend_from_slice(&PAIRS[digit % 100]);
}

#[cfg(test)]
mod tests;
