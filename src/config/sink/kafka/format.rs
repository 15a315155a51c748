//! `format` of `[relay.sink.kafka]`, and the section of each.

use std::collections::BTreeMap;

use super::{Around, schema, template};
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::value;
use crate::sink::kafka::{
    AttributeType, CloudEvents, Debezium, EventMode, Format, Payload, SchemaKind, is_extension_name, is_media_type,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Row,
    CloudEvents,
    Debezium,
    Schema(SchemaKind),
}

const WORDS: &[(&str, Word)] = &[
    ("row", Word::Row),
    ("cloudevents", Word::CloudEvents),
    ("debezium", Word::Debezium),
    ("avro", Word::Schema(SchemaKind::Avro)),
    ("protobuf", Word::Schema(SchemaKind::Protobuf)),
    ("json_schema", Word::Schema(SchemaKind::JsonSchema)),
];

pub(super) fn read(
    section: &Section<'_>,
    payload: Option<&Payload>,
    headers: &BTreeMap<String, String>,
    around: Around<'_>,
) -> Option<Format> {
    let word = match section.has("format") {
        true => section.read("format", value::word(WORDS, &[]))?,
        false => Word::Row,
    };
    // That of rows has no section.
    for (key, of) in WORDS.iter().skip(1) {
        if word != *of && section.has(key) {
            let what = format!("this section counts for format = {key:?} only");
            section.problem(key, Wrong::new(what, format!("write format = {key:?}, or remove the section")));
        }
    }
    let format = match word {
        Word::Row => Format::Row,
        Word::CloudEvents => Format::CloudEvents(cloudevents(&section.section("cloudevents"), payload)?),
        Word::Debezium => Format::Debezium(debezium(section, payload)),
        Word::Schema(kind) => Format::Schema(Box::new(schema::read(section, kind, around)?)),
    };
    for name in headers.keys().filter(|name| format.owns_header(name)) {
        let what = format!("the header {name:?} is one of format = {:?}", format.word());
        let fix = "write an attribute of your own into [relay.sink.kafka.cloudevents] extensions";
        section.problem("headers", Wrong::new(what, fix));
    }
    Some(format)
}

fn debezium(section: &Section<'_>, payload: Option<&Payload>) -> Debezium {
    if let Some(Payload::Column(_)) = payload {
        let what = "one column: an event of Debezium has the columns of a row";
        let fix = "write payload = { row = true } or payload = { columns = [\"id\", \"payload\"] }";
        section.problem("payload", Wrong::new(what, fix));
    }
    Debezium { name: section.section("debezium").read("name", value::text) }
}

fn cloudevents(section: &Section<'_>, payload: Option<&Payload>) -> Option<CloudEvents> {
    let modes = &[("binary", EventMode::Binary), ("structured", EventMode::Structured)];
    let mode = section.read("mode", value::word(modes, &[]));
    let text = |of_type| value::parsed(move |text: &str| attribute(text, of_type));
    let source = section.read("source", text(AttributeType::UriReference));
    let subject = section.read("subject", text(AttributeType::Text));
    let dataschema = section.read("dataschema", text(AttributeType::Uri));
    let extensions = extensions(section);
    let datacontenttype = match payload {
        // A column may hold anything.
        Some(Payload::Column(_)) => {
            let fix = "say what the column holds, for example \"application/json\", \"text/plain\" or \
                       \"application/octet-stream\"";
            section.require("datacontenttype", value::parsed(media_type), fix)
        }
        _ if section.has("datacontenttype") => section.read("datacontenttype", value::parsed(json_type)),
        _ => Some("application/json".to_owned()),
    };
    let fix = "name the type of events, or a column that has it: type = \"org.example.booking.created\", type = \"{{ event }}\"";
    let kind = section.require("type", text(AttributeType::Text), fix);
    Some(CloudEvents {
        mode: mode.unwrap_or_default(),
        source,
        kind: kind?,
        subject,
        dataschema,
        datacontenttype: datacontenttype?,
        extensions: extensions?,
    })
}

/// A template; one that no row fills is judged here.
fn attribute(text: &str, of_type: AttributeType) -> Result<String, Wrong> {
    let text = template::parse(text)?;
    if template::is_fixed(&text)
        && let Err(faulty) = of_type.check(&text)
    {
        let fix = match of_type {
            AttributeType::Text => "write a line of text",
            AttributeType::UriReference => {
                "write for example \"https://example.org/bookings\", or \"/bookings\"; a space is %20"
            }
            AttributeType::Uri => "write for example \"https://example.org/schemas/booking.json\"",
        };
        return Err(Wrong::new(faulty.to_string(), fix));
    }
    Ok(text)
}

fn media_type(text: &str) -> Result<String, Wrong> {
    if is_media_type(text) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        "no media type of a payload",
        "write for example \"application/json\" or \"text/plain; charset=utf-8\"",
    ))
}

/// Of a row or some columns.
fn json_type(text: &str) -> Result<String, Wrong> {
    let text = media_type(text)?;
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media.ends_with("/json") || media.ends_with("+json") {
        return Ok(text);
    }
    let fix =
        "write \"application/json\" or one that ends with +json, or publish one column: payload = { column = \"…\" }";
    Err(Wrong::new("this payload is JSON", fix))
}

fn extensions(section: &Section<'_>) -> Option<BTreeMap<String, String>> {
    if !section.has("extensions") {
        return Some(BTreeMap::new());
    }
    let extensions = section.read("extensions", value::texts)?;
    for (name, text) in &extensions {
        let wrong = if !is_extension_name(name) {
            let fix = "write 1 to 20 lower-case letters and digits, and no attribute of the specification";
            Wrong::new(format!("{name:?} is no name of an attribute of one's own"), fix)
        } else if let Err(Wrong { what, fix }) = attribute(text, AttributeType::Text) {
            Wrong::new(format!("{name}: {what}"), fix)
        } else {
            continue;
        };
        section.problem("extensions", wrong);
    }
    Some(extensions)
}
