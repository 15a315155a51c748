//! CloudEvents 1.0, by their binding to Kafka: the attributes as headers beside the payload (binary mode), or attributes and
//! payload as one JSON object (structured mode).
//!
//! Promise: each record is a valid event. A row of which none can be made is poison: an attribute that is NULL, empty or not of
//! its type is never published, and never left out silently if the specification asks for it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::utf8_percent_encode;

mod attribute;
mod event;

pub use attribute::{AttributeType, Faulty, is_extension_name, is_media_type};
pub(super) use event::Event;

use crate::message::Message;
use crate::position::Text;
use crate::sink::template::{Mode, Template, UNRESERVED};
use crate::sink::{Class, Failure, InvalidSetting, Subject};
use event::{Data, data};

/// The code of a row of which no valid event can be made.
const CODE: &str = "invalid_cloudevent";
/// Before each attribute's name, in a header's.
const PREFIX: &str = "ce_";
/// The header that names the mode, or the payload's media type.
const CONTENT_TYPE: &str = "content-type";
/// Its value in structured mode.
const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";

/// Consumers' libraries may take names that differ in case for one, and the last of them then wins: none of a row may come behind ours.
pub(super) fn owns_header(name: &str) -> bool {
    let has_prefix = name.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
    has_prefix || name.eq_ignore_ascii_case(CONTENT_TYPE)
}

/// Where the attributes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventMode {
    /// In headers; the value is the payload.
    #[default]
    Binary,
    /// In the value, with the payload.
    Structured,
}

/// `[relay.sink.kafka.cloudevents]` of the configuration: texts are templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudEvents {
    /// Where the attributes stand.
    pub mode: EventMode,
    /// None: `/outbox-relay/` and the relay's name.
    pub source: Option<String>,
    /// `type`.
    pub kind: String,
    /// Left out where it is empty.
    pub subject: Option<String>,
    /// The same.
    pub dataschema: Option<String>,
    /// What the payload is.
    pub datacontenttype: String,
    /// Attributes of one's own; an empty one is left out.
    pub extensions: BTreeMap<String, String>,
}

impl CloudEvents {
    /// The attributes that are templates: name, text, type, and whether the specification asks for it.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str, AttributeType, bool)> {
        let source = self.source.as_deref().map(|text| ("source", text, AttributeType::UriReference, true));
        let kind = ("type", self.kind.as_str(), AttributeType::Text, true);
        let subject = self.subject.as_deref().map(|text| ("subject", text, AttributeType::Text, false));
        let dataschema = self.dataschema.as_deref().map(|text| ("dataschema", text, AttributeType::Uri, false));
        let extensions = self.extensions.iter();
        let extensions = extensions.map(|(name, text)| (name.as_str(), text.as_str(), AttributeType::Text, false));
        source.into_iter().chain([kind]).chain(subject).chain(dataschema).chain(extensions)
    }

    /// The key of `[relay.sink.kafka]` that gives this attribute.
    #[must_use]
    pub fn key(&self, attribute: &str) -> String {
        let of = if self.extensions.contains_key(attribute) { "extensions." } else { "" };
        format!("cloudevents.{of}{attribute}")
    }
}

/// A value inside of an address stays in its place; a template that is nothing but one value gives the whole address.
fn mode_of(of_type: AttributeType, text: &str) -> Mode {
    let text = text.trim();
    let is_whole = text.starts_with("{{") && text.ends_with("}}") && text.matches("{{").count() == 1;
    if of_type == AttributeType::Text || is_whole { Mode::Line } else { Mode::Url }
}

#[derive(Debug)]
enum Source {
    Fixed(String),
    /// The template, and the field numbers of its columns.
    Template(Box<Template>, Vec<usize>),
}

#[derive(Debug)]
struct Attribute {
    /// With the prefix of headers.
    header: String,
    of_type: AttributeType,
    is_required: bool,
    source: Source,
}

impl Attribute {
    fn name(&self) -> &str {
        &self.header[PREFIX.len()..]
    }

    /// Its value for a message; none where it is left out.
    fn value<'a>(&'a self, message: &Message<'a>) -> Result<Option<Cow<'a, str>>, Failure> {
        let (template, columns) = match &self.source {
            Source::Fixed(text) => return Ok(Some(Cow::Borrowed(text))),
            Source::Template(template, columns) => (template, columns),
        };
        let text = template.render(|column| message.given(columns[column])).map_err(|error| {
            let left_out = if self.is_required { "" } else { " An attribute that is empty is left out." };
            poison(
                format!("The CloudEvents attribute {} fails for this row: {error}", self.name()),
                &format!("{}{left_out}", error.hint()),
            )
        })?;
        if text.is_empty() && !self.is_required {
            return Ok(None);
        }
        self.of_type.check(&text).map_err(|faulty| invalid(self.name(), faulty))?;
        Ok(Some(Cow::Owned(text)))
    }
}

/// What is made of each message.
#[derive(Debug)]
pub(super) struct Events {
    mode: EventMode,
    datacontenttype: String,
    data: Data,
    attributes: Vec<Attribute>,
}

impl Events {
    pub(super) fn new(
        config: &CloudEvents,
        relay: &str,
        want: &mut dyn FnMut(&str) -> usize,
    ) -> Result<Self, InvalidSetting> {
        let mut attributes = Vec::new();
        if config.source.is_none() {
            let relay = utf8_percent_encode(relay, UNRESERVED);
            attributes.push(Attribute {
                header: format!("{PREFIX}source"),
                of_type: AttributeType::UriReference,
                is_required: true,
                source: Source::Fixed(format!("/outbox-relay/{relay}")),
            });
        }
        for (name, text, of_type, is_required) in config.attributes() {
            let source = if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
                let template = Template::compile(&config.key(name), text, mode_of(of_type, text))?;
                let columns = template.columns().iter().map(|column| want(column)).collect();
                Source::Template(Box::new(template), columns)
            } else {
                Source::Fixed(text.to_owned())
            };
            attributes.push(Attribute { header: format!("{PREFIX}{name}"), of_type, is_required, source });
        }
        let datacontenttype = config.datacontenttype.clone();
        Ok(Self { mode: config.mode, data: data(&datacontenttype), datacontenttype, attributes })
    }

    /// The event of a message, or why there can be none.
    pub(super) fn of<'a>(&'a self, message: &Message<'a>) -> Result<Event<'a>, Failure> {
        AttributeType::Text.check(message.id).map_err(|faulty| invalid("id", faulty))?;
        // A row that is due again is another event, and the specification wants another id for it.
        let id = match message.due_at() {
            None => Cow::Borrowed(message.id),
            Some(due_at) => Cow::Owned(format!("{}/{due_at}", message.id)),
        };
        let mut values = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            if let Some(value) = attribute.value(message)? {
                values.push((attribute, value));
            }
        }
        let time = Some(message.created_at.text()).filter(|text| matches!(text, Text::Common(_)));
        Ok(Event { events: self, id, time, values })
    }
}

fn invalid(name: &str, faulty: Faulty) -> Failure {
    poison(
        format!("The CloudEvents attribute {name} of this row {faulty}"),
        &format!("Correct the row, or the template of {name} in [relay.sink.kafka.cloudevents]."),
    )
}

fn poison(message: String, hint: &str) -> Failure {
    Failure::of(Class::Poison, CODE, message, hint).about(Subject::Message)
}

#[cfg(test)]
mod tests;
