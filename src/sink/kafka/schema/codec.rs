//! A schema as it was given, and the one of the three formats that it is of.

use super::avro::Avro;
use super::json_schema::JsonSchema;
use super::misfit::Misfit;
use super::protobuf::Protobuf;
use super::registry::Given;
use super::{SchemaField, SchemaFormat, SchemaKind};

/// What a record begins with in Confluent's wire format.
const MAGIC: u8 = 0;
/// Behind it, the schema's id.
const HEADER: usize = 5;

/// Writes rows by one schema.
#[derive(Debug)]
pub(super) enum Codec {
    Avro(Avro),
    Protobuf(Protobuf),
    JsonSchema(JsonSchema),
}

impl Codec {
    /// Of what the registry has given.
    ///
    /// # Errors
    /// Why nothing can be written by it.
    pub(super) fn new(format: &SchemaFormat, given: &Given) -> Result<Self, String> {
        let wanted = format.kind.in_registry();
        if given.kind != wanted {
            return Err(format!(
                "it is of the type {}, and the relay has format = {:?}",
                given.kind,
                format.kind.word()
            ));
        }
        let references: Vec<(&str, &str)> =
            given.references.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let codec = Self::of(format, &given.text, &references)?;
        match (codec.name(), &format.record) {
            (Some(name), Some(record)) if name != record => {
                Err(format!("it is of {name}, and the relay wants {record}"))
            }
            _ => Ok(codec),
        }
    }

    fn of(format: &SchemaFormat, text: &str, references: &[(&str, &str)]) -> Result<Self, String> {
        let unknown = format.ignores_unknown;
        Ok(match format.kind {
            SchemaKind::Avro => {
                let references: Vec<&str> = references.iter().map(|(_, text)| *text).collect();
                Self::Avro(Avro::new(text, &references, unknown)?)
            }
            SchemaKind::Protobuf => Self::Protobuf(Protobuf::new(text, references, format.record.as_deref(), unknown)?),
            SchemaKind::JsonSchema => Self::JsonSchema(JsonSchema::new(text, references)?),
        })
    }

    /// The full name of what a schema's text is of.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn name_in(format: &SchemaFormat, text: &str) -> Result<String, String> {
        let codec = Self::of(format, text, &[])?;
        let name = codec.name().map(str::to_owned);
        name.ok_or_else(|| "it has no name: an Avro schema needs a record at its top, a JSON Schema a title".to_owned())
    }

    /// The full name of the record or message.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Avro(avro) => avro.name(),
            Self::Protobuf(protobuf) => Some(protobuf.name()),
            Self::JsonSchema(schema) => schema.name(),
        }
    }

    pub(super) fn fields(&self) -> Option<Vec<SchemaField>> {
        match self {
            Self::Avro(avro) => avro.fields(),
            Self::Protobuf(protobuf) => Some(protobuf.fields()),
            Self::JsonSchema(_) => None,
        }
    }

    /// The record's value: magic byte, id, and the payload in the format. `most` is how many bytes a record may take.
    pub(super) fn encode(&self, id: u32, payload: &[u8], most: usize) -> Result<Vec<u8>, Misfit> {
        let mut out = Vec::with_capacity(HEADER + payload.len());
        out.push(MAGIC);
        out.extend_from_slice(&id.to_be_bytes());
        match self {
            Self::Avro(avro) => avro.encode(payload, most, &mut out)?,
            Self::Protobuf(protobuf) => protobuf.encode(payload, &mut out)?,
            Self::JsonSchema(schema) => schema.encode(payload, &mut out)?,
        }
        if out.len() > most { Err(Misfit::Large(out.len())) } else { Ok(out) }
    }
}
