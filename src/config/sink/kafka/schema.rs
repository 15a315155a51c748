//! `[relay.sink.kafka.avro]`, `.protobuf` and `.json_schema`: formats whose schemas are in the registry of `[schema_registry]`.

use std::sync::Arc;

use super::Around;
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::show::TomlLines;
use crate::config::tree::{Node, Value};
use crate::config::value;
use crate::sink::kafka::{SchemaFormat, SchemaKind, SubjectName, WantedSchema};

const SUBJECTS: &[(&str, SubjectName)] =
    &[("topic", SubjectName::Topic), ("record", SubjectName::Record), ("topic_record", SubjectName::TopicRecord)];
/// What becomes of a column that the schema does not have: whether it is left out.
const UNKNOWN: &[(&str, bool)] = &[("refuse", false), ("ignore", true)];
const LATEST: &str = "latest";

/// The key that names the record or message.
const fn record_key(kind: SchemaKind) -> &'static str {
    match kind {
        SchemaKind::Avro | SchemaKind::JsonSchema => "record",
        SchemaKind::Protobuf => "message",
    }
}

pub(super) fn read(sink: &Section<'_>, kind: SchemaKind, around: Around<'_>) -> Option<SchemaFormat> {
    if !SchemaFormat::is_available() {
        let fix = "write another format, or use a program that was built with the cargo feature schema-registry";
        sink.problem("format", Wrong::new("this program was built without it", fix));
        return None;
    }
    if !around.has_registry {
        let fix = "add [schema_registry] with url = \"http://127.0.0.1:8081\"";
        sink.missing("format", "no registry is configured: the section [schema_registry] is missing", fix);
    }
    let section = sink.section(kind.word());
    let subject = section.read("subject", value::word(SUBJECTS, &[])).unwrap_or_default();
    let record = section.read(record_key(kind), value::text);
    // What a JSON Schema has nothing against is published as it is.
    let ignores_unknown = match kind {
        SchemaKind::Avro | SchemaKind::Protobuf => section.read("unknown", value::word(UNKNOWN, &[])),
        SchemaKind::JsonSchema => None,
    };
    let wanted = wanted(&section)?;
    if subject != SubjectName::Topic && record.is_none() && !matches!(wanted, WantedSchema::File { .. }) {
        let key = record_key(kind);
        let fix = format!("write {key} = \"org.example.Booking\", its full name, or schema_file");
        section.missing(key, "missing: the subject has the name of what the schema is of", &fix);
    }
    Some(SchemaFormat {
        kind,
        subject,
        wanted,
        record,
        ignores_unknown: ignores_unknown.unwrap_or(false),
        registry: Arc::clone(around.registry?),
    })
}

fn wanted(section: &Section<'_>) -> Option<WantedSchema> {
    let path = section.read("schema_file", value::path);
    let register = section.read("register", value::boolean).unwrap_or(false);
    let version = section.read("version", version);
    if section.has("schema_file") {
        if section.has("version") {
            let what = "schema_file says which schema counts, and version, too";
            section.problem("version", Wrong::new(what, "remove one of the two"));
        }
        return path.map(|path| WantedSchema::File { path, register });
    }
    if register {
        let fix = "write schema_file with the path of the schema, or remove register";
        section.missing("schema_file", "missing: there is no schema to be registered", fix);
    }
    if section.has("version") { version } else { Some(WantedSchema::Latest) }
}

fn version(node: &Node) -> Result<WantedSchema, Wrong> {
    let fix = "write \"latest\", or the number of a version";
    match &node.value {
        Value::Text(text) if text == LATEST => Ok(WantedSchema::Latest),
        Value::Integer(number) => {
            let number = u32::try_from(*number).ok().filter(|number| (1..=0x7fff_ffff).contains(number));
            number.map(WantedSchema::Version).ok_or_else(|| Wrong::new("no number of a version", fix))
        }
        _ => Err(Wrong::new(format!("a version is needed here, this is {}", node.kind()), fix)),
    }
}

/// As it is read.
pub(in crate::config) fn write(lines: &mut TomlLines, format: &SchemaFormat) {
    lines.section(&format!("[relay.sink.kafka.{}]", format.kind.word()));
    let subject = SUBJECTS.iter().find(|(_, subject)| *subject == format.subject).map_or("", |(word, _)| word);
    lines.text("subject", subject);
    if let Some(record) = &format.record {
        lines.text(record_key(format.kind), record);
    }
    match &format.wanted {
        WantedSchema::Latest => lines.text("version", LATEST),
        WantedSchema::Version(version) => lines.raw("version", version),
        WantedSchema::File { path, register } => {
            lines.text("schema_file", &path.display().to_string());
            lines.raw("register", register);
        }
    }
    if format.kind != SchemaKind::JsonSchema {
        let word = UNKNOWN.iter().find(|(_, ignores)| *ignores == format.ignores_unknown).map_or("", |(word, _)| word);
        lines.text("unknown", word);
    }
}
