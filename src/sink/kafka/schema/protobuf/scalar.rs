//! Values that hold no others.

use std::borrow::Cow;

use prost_reflect::bytes::Bytes;
use prost_reflect::{EnumDescriptor, Kind as Type, Value};

use super::super::binary;
use super::super::json::{Json, Kind};
use super::super::misfit::Misfit;
use super::super::number;

pub(super) fn wanted(what: &str, json: Json<'_>) -> Misfit {
    Misfit::new(format!("{what} is needed, the row has {}", json.kind().as_str()))
}

/// A value of a scalar type or an enum.
pub(super) fn value(of: &Type, json: Json<'_>) -> Result<Value, Misfit> {
    Ok(match of {
        Type::Double => Value::F64(float(json, "double", number::double)?),
        Type::Float => Value::F32(float(json, "single", number::single)?),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => Value::I32(whole(json, "a whole number of 32 bits")?),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => Value::I64(whole(json, "a whole number of 64 bits")?),
        Type::Uint32 | Type::Fixed32 => Value::U32(whole(json, "a natural number of 32 bits")?),
        Type::Uint64 | Type::Fixed64 => Value::U64(whole(json, "a natural number of 64 bits")?),
        Type::Bool => Value::Bool(json.boolean().ok_or_else(|| wanted("a boolean", json))?),
        Type::String => Value::String(text(json)?.into_owned()),
        Type::Bytes => Value::Bytes(bytes(json)?),
        Type::Enum(of) => Value::EnumNumber(symbol(of, json)?),
        Type::Message(_) => return Err(wanted("a message", json)),
    })
}

/// The mapping has numbers of 64 bits as texts, too.
fn digits<'a>(json: Json<'a>, what: &str) -> Result<Cow<'a, str>, Misfit> {
    match json.kind() {
        Kind::Number => Ok(Cow::Borrowed(json.source())),
        Kind::Text => Ok(json.text().unwrap_or_default()),
        _ => Err(wanted(what, json)),
    }
}

fn whole<T: TryFrom<i128>>(json: Json<'_>, what: &str) -> Result<T, Misfit> {
    let number = number::whole(&digits(json, what)?).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| Misfit::new(format!("it is not {what}")))
}

fn float<T>(json: Json<'_>, precision: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Misfit> {
    let digits = digits(json, "a number")?;
    read(&digits).ok_or_else(|| Misfit::new(format!("it is no number of {precision} precision")))
}

/// What is no text is written as the JSON that it is.
fn text<'a>(json: Json<'a>) -> Result<Cow<'a, str>, Misfit> {
    match json.kind() {
        Kind::Null => Err(wanted("a text", json)),
        Kind::Text => json.text().ok_or_else(|| Misfit::new("the text is no Unicode")),
        Kind::Boolean | Kind::Number | Kind::List | Kind::Object => Ok(Cow::Borrowed(json.source())),
    }
}

fn bytes(json: Json<'_>) -> Result<Bytes, Misfit> {
    let text = json.text().ok_or_else(|| wanted("a text", json))?;
    let bytes = binary::bytes(&text).map(Bytes::from);
    bytes.ok_or_else(|| Misfit::new("bytes are needed: \\x and hexadecimal digits, or base64"))
}

/// By its name or its number.
fn symbol(of: &EnumDescriptor, json: Json<'_>) -> Result<i32, Misfit> {
    match json.kind() {
        Kind::Number => whole(json, "a whole number of 32 bits"),
        Kind::Text => {
            let found = json.text().and_then(|text| of.get_value_by_name(&text));
            found.map(|value| value.number()).ok_or_else(|| Misfit::new("the text is none of the enum's values"))
        }
        // google.protobuf.NullValue has no other value.
        Kind::Null => Ok(0),
        _ => Err(wanted("a text", json)),
    }
}
