//! Messages of `google.protobuf` that have a JSON of their own.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind as Type, MessageDescriptor, Value};

use super::super::json::{Json, Kind};
use super::super::misfit::Misfit;
use super::super::moment::Moment;
use super::scalar;

/// The first second of the year 1: no timestamp is earlier.
const FIRST: i64 = -62_135_596_800;

/// Whether null is a value of the field's type.
pub(super) fn takes_null(field: &FieldDescriptor) -> bool {
    if field.is_list() || field.is_map() {
        return false;
    }
    match field.kind() {
        Type::Message(of) => of.full_name() == "google.protobuf.Value",
        Type::Enum(of) => of.full_name() == "google.protobuf.NullValue",
        _ => false,
    }
}

/// Of a type that has a JSON of its own; none for all others.
pub(super) fn message(of: &MessageDescriptor, json: Json<'_>) -> Option<Result<DynamicMessage, Misfit>> {
    Some(match of.full_name().strip_prefix("google.protobuf.")? {
        "Timestamp" => timestamp(of, json),
        "DoubleValue" | "FloatValue" | "Int64Value" | "UInt64Value" | "Int32Value" | "UInt32Value" | "BoolValue"
        | "StringValue" | "BytesValue" => wrapped(of, json),
        "Duration" | "FieldMask" | "Struct" | "Value" | "ListValue" | "Any" | "Empty" => of_mapping(of, json),
        _ => return None,
    })
}

fn made(
    of: &MessageDescriptor,
    values: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<DynamicMessage, Misfit> {
    let mut message = DynamicMessage::new(of.clone());
    for (name, value) in values {
        message.try_set_field_by_name(name, value).map_err(|error| Misfit::new(error.to_string()))?;
    }
    Ok(message)
}

fn timestamp(of: &MessageDescriptor, json: Json<'_>) -> Result<DynamicMessage, Misfit> {
    if json.kind() != Kind::Text {
        return Err(scalar::wanted("a point of time", json));
    }
    let moment = json.text().and_then(|text| Moment::of(&text)).filter(|moment| moment.seconds >= FIRST);
    let moment = moment.ok_or_else(|| Misfit::new("the text is no point of time of the years 1 to 9999"))?;
    let nanos = i32::try_from(moment.nanos).unwrap_or_default();
    made(of, [("seconds", Value::I64(moment.seconds)), ("nanos", Value::I32(nanos))])
}

/// A value that may be missing.
fn wrapped(of: &MessageDescriptor, json: Json<'_>) -> Result<DynamicMessage, Misfit> {
    let field = of.get_field_by_name("value").ok_or_else(|| Misfit::new("the schema's wrapper has no value"))?;
    made(of, [("value", scalar::value(&field.kind(), json)?)])
}

/// As the library reads it; its words may have the value.
fn of_mapping(of: &MessageDescriptor, json: Json<'_>) -> Result<DynamicMessage, Misfit> {
    let mut reader = serde_json::Deserializer::from_str(json.source());
    let read = DynamicMessage::deserialize(of.clone(), &mut reader);
    read.map_err(|_| Misfit::new(format!("{} is no JSON of {}", json.kind().as_str(), of.full_name())))
}
