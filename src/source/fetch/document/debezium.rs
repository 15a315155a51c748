//! Values as Debezium's connector for PostgreSQL makes them, with its defaults but for `decimal.handling.mode=string`.
//!
//! Pure. What is not here is as `row_to_json` has it. The same in SQL, for what is not read in parts: `src/source/shape/debezium.rs`; a
//! test compares both, another one compares them with a real Debezium (`tests/incumbent`).

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_postgres::types::Type;

use super::instant::{EPOCH_DAYS, Instant, MOST_DIGITS};
use super::{numeric, string};
use crate::message::Field;

/// Microseconds between 1970-01-01 and 2000-01-01, PostgreSQL's epoch.
const EPOCH_MICROS: i128 = EPOCH_DAYS as i128 * 86_400_000_000;
/// What an infinite `timestamp` becomes.
const FOREVER: i128 = 9_223_372_036_825_200_000;
const NEVER: i128 = -9_223_372_036_832_400_000;

/// Whose JSON it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::fetch) enum Style {
    /// That of `row_to_json`.
    Row,
    /// That of Debezium's connector for PostgreSQL.
    Debezium,
}

impl Style {
    /// Of a document.
    pub(in crate::source::fetch) const fn of(field: &Field) -> Self {
        if matches!(field, Field::Debezium(_)) { Self::Debezium } else { Self::Row }
    }
}

/// A timestamp of no more digits is in milliseconds.
const MILLIS: usize = 3;

/// How a value of a type is written, where that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A string of its digits.
    Numeric,
    /// Base64.
    Bytes,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since then.
    Micros,
    /// Milliseconds.
    Millis,
    /// With so many digits behind the point, and `Z`.
    TimestampTz(usize),
    /// A string with JSON in it.
    Json,
    /// The same, behind the version of its binary form.
    Jsonb,
}

impl Form {
    /// None for a type that is as `row_to_json` has it.
    pub(super) fn of(of: &Type, modifier: i32) -> Option<Self> {
        let digits = usize::try_from(modifier).unwrap_or(MOST_DIGITS);
        Some(match *of {
            Type::NUMERIC => Self::Numeric,
            Type::BYTEA => Self::Bytes,
            Type::DATE => Self::Date,
            Type::TIMESTAMP if digits <= MILLIS => Self::Millis,
            Type::TIMESTAMP => Self::Micros,
            Type::TIMESTAMPTZ => Self::TimestampTz(digits),
            Type::JSON => Self::Json,
            Type::JSONB => Self::Jsonb,
            _ => return None,
        })
    }
}

/// Appends one value; none when it is malformed.
pub(super) fn value(form: Form, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match form {
        Form::Numeric => {
            let begin = out.len();
            out.push(b'"');
            numeric(bytes, out)?;
            // What is no number has its quotes already.
            if out.get(begin + 1) == Some(&b'"') {
                out.pop();
                out.remove(begin);
            }
            out.push(b'"');
        }
        Form::Bytes => {
            out.push(b'"');
            base64(bytes, out);
            out.push(b'"');
        }
        Form::Date => match i32::from_be_bytes(bytes.try_into().ok()?) {
            i32::MAX | i32::MIN => out.extend_from_slice(b"null"),
            days => number(i128::from(days) + i128::from(EPOCH_DAYS), out),
        },
        Form::Micros => number(micros(bytes)?, out),
        Form::Millis => number(micros(bytes)?.div_euclid(1_000), out),
        Form::TimestampTz(digits) => {
            Instant::of_micros(i64::from_be_bytes(bytes.try_into().ok()?))?.write("Z", Some(digits), out);
        }
        Form::Json => string(bytes, out),
        Form::Jsonb => string(bytes.strip_prefix(&[1])?, out),
    }
    Some(())
}

/// Since 1970. PostgreSQL's last years are beyond what 64 bits hold.
fn micros(bytes: &[u8]) -> Option<i128> {
    Some(match i64::from_be_bytes(bytes.try_into().ok()?) {
        i64::MAX => FOREVER,
        i64::MIN => NEVER,
        micros => i128::from(micros) + EPOCH_MICROS,
    })
}

fn number(number: i128, out: &mut Vec<u8>) {
    // A vector takes all that it is given.
    let _ = write!(out, "{number}");
}

/// Into what is there already: a value may be large.
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[begin..]);
    debug_assert_eq!(written.ok(), Some(out.len() - begin), "padded base64 has four bytes for three");
}
