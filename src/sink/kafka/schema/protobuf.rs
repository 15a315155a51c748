//! Protocol Buffers: a row's JSON as a message, by the format's own mapping of JSON, and what PostgreSQL writes beside it.
//!
//! Promise: as for Avro. Beyond the mapping of protobuf.dev, a `bytes` field takes `\x` and hexadecimal digits, a `string` field any value
//! as the JSON that it is, and a timestamp without a zone is in UTC.

use std::collections::HashMap;

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, FieldDescriptor, MessageDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::SchemaField;
use super::json::Json;
use super::misfit::Misfit;

mod fill;
mod scalar;
mod well_known;

/// What the schema's own file is called while it is compiled; references have the names that it imports.
const FILE: &str = "outbox-relay/schema.proto";

/// A message type, ready to write by.
#[derive(Debug)]
pub(super) struct Protobuf {
    message: MessageDescriptor,
    /// Where the message stands in its file, as consumers find it: the bytes behind the schema's id.
    indexes: Vec<u8>,
    /// Members that the schema does not have are left out.
    ignores_unknown: bool,
}

impl Protobuf {
    /// Of a schema, and of those that it imports, by their names. Without the name of a message, of the first one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(
        text: &str,
        references: &[(&str, &str)],
        message: Option<&str>,
        ignores_unknown: bool,
    ) -> Result<Self, String> {
        let pool = compiled(text, references)?;
        let file = pool.get_file_by_name(FILE).ok_or("the schema has no file")?;
        let message = match message {
            None => file.messages().next().ok_or("the schema has no message")?,
            Some(name) => {
                let found = pool.get_message_by_name(name).filter(|message| message.parent_file().name() == FILE);
                found.ok_or_else(|| {
                    let all: Vec<String> = file.messages().map(|message| message.full_name().to_owned()).collect();
                    format!("the schema has no message {name}; it has {}", all.join(", "))
                })?
            }
        };
        let indexes = indexes(&message);
        Ok(Self { message, indexes, ignores_unknown })
    }

    /// The message's full name.
    pub(super) fn name(&self) -> &str {
        self.message.full_name()
    }

    pub(super) fn fields(&self) -> Vec<SchemaField> {
        let of = |field: FieldDescriptor| {
            let (name, json_name) = (field.name().to_owned(), Some(field.json_name().to_owned()));
            SchemaField { name, json_name, is_required: field.is_required() }
        };
        self.message.fields().map(of).collect()
    }

    /// Appends a payload.
    pub(super) fn encode(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
        let json = Json::of(payload).ok_or_else(|| Misfit::new("the payload is no JSON"))?;
        let message = fill::Filler { ignores_unknown: self.ignores_unknown }.message(&self.message, json, 0)?;
        out.extend_from_slice(&self.indexes);
        message.encode(out).map_err(|error| Misfit::new(error.to_string()))
    }
}

fn compiled(text: &str, references: &[(&str, &str)]) -> Result<DescriptorPool, String> {
    let texts = references.iter().copied().chain([(FILE, text)]);
    let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let mut files = ChainFileResolver::new();
    files.add(Texts(texts));
    files.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(files);
    compiler.include_imports(true);
    compiler.open_file(FILE).map_err(|error| format!("it is no Protobuf schema: {error}"))?;
    Ok(compiler.descriptor_pool())
}

struct Texts(HashMap<String, String>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = self.0.get(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, text)
    }
}

/// The numbers that lead from the file to a message, as Confluent's wire format has them; the first message is one zero.
fn indexes(message: &MessageDescriptor) -> Vec<u8> {
    let mut path = Vec::new();
    let mut inner = message.clone();
    while let Some(outer) = inner.parent_message() {
        // A map, and a group, is a message for the compiler alone: no text of a schema has it.
        let is_group = |child: &MessageDescriptor| {
            outer.fields().any(|field| field.is_group() && field.kind().as_message() == Some(child))
        };
        let written = outer.child_messages().filter(|child| !child.is_map_entry() && !is_group(child));
        path.push(written.take_while(|child| *child != inner).count());
        inner = outer;
    }
    path.push(inner.parent_file().messages().take_while(|child| *child != inner).count());
    path.reverse();
    if path == [0] {
        return vec![0];
    }
    let mut bytes = Vec::new();
    for number in std::iter::once(path.len()).chain(path) {
        varint(number << 1, &mut bytes);
    }
    bytes
}

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

#[cfg(test)]
mod tests;
