//! How a row becomes a record: topic, key, value, headers.

use std::borrow::Cow;

use rdkafka::message::{Header, OwnedHeaders};

use super::debezium::Origin;
use super::format::{Format, Formatted, Formatter};
use super::schema::{Encoder, Unencoded};
use super::{Config, Payload};
use crate::message::{Field, Message};
use crate::sink::template::{self, Mode, Template};
use crate::sink::{Class, Failure, InvalidSetting, Mark, Subject, row_headers};

/// What a record takes beyond its key, value and headers: an upper bound of the batch's and the record's own fields.
pub(super) const OVERHEAD: usize = 288;

/// Where the topic's name comes from.
#[derive(Debug)]
enum Topic {
    Fixed(String),
    /// The template, and the field numbers of its columns.
    Template(Template, Vec<usize>),
}

/// Which field of a message is what in a record. Field 0 is the value.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) fields: Vec<Field>,
    topic: Topic,
    key: Option<usize>,
    headers: Vec<(String, usize)>,
    traceparent: Option<usize>,
    /// A JSON object of further headers.
    own: Option<usize>,
    format: Formatter,
}

/// Columns that are passed on as headers where the table has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The trace context.
    pub traceparent: bool,
    /// The object `headers` of `outbox.message`.
    pub headers: bool,
}

/// Header names that are the relay's own.
const OURS: [&str; 6] = ["id", "created_at", "relay", "late", "replayed", "traceparent"];

/// A record, ready to send.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) topic: Cow<'a, str>,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<Cow<'a, [u8]>>,
    pub(super) headers: OwnedHeaders,
}

impl Layout {
    pub(super) fn new(config: &Config, relay: &str, passed: Passed) -> Result<Self, InvalidSetting> {
        let is_debezium = matches!(config.format, Format::Debezium(_));
        let mut fields = vec![match &config.payload {
            Payload::Row if is_debezium => Field::Debezium(None),
            Payload::Columns(columns) if is_debezium => Field::Debezium(Some(columns.clone())),
            Payload::Row => Field::Row,
            Payload::Column(column) => Field::Payload(column.clone()),
            Payload::Columns(columns) => Field::Columns(columns.clone()),
        }];
        let mut want = |column: &str| {
            fields.push(Field::Text(column.to_owned()));
            fields.len() - 1
        };
        let key = config.key.as_deref().map(&mut want);
        let headers = config.headers.iter().map(|(name, column)| (name.clone(), want(column))).collect();
        let traceparent = passed.traceparent.then(|| want("traceparent"));
        let own = passed.headers.then(|| want(row_headers::COLUMN));
        let topic = if config.templated() {
            let template = Template::compile("topic", &config.topic, Mode::Line)?;
            let columns = template.columns().iter().map(|column| want(column)).collect();
            Topic::Template(template, columns)
        } else {
            Topic::Fixed(config.topic.clone())
        };
        let format = Formatter::new(&config.format, relay, &mut want)?;
        Ok(Self { fields, topic, key, headers, traceparent, own, format })
    }

    /// The same, for the rows of a table.
    pub(super) fn of_table(self, origin: Origin<'_>) -> Self {
        Self { format: self.format.of_table(origin), ..self }
    }

    /// The record of a message, or why it can never be published. `limit` is the most bytes that it may take.
    pub(super) fn record<'a>(
        &'a self,
        relay: &str,
        limit: usize,
        mark: Option<Mark>,
        message: &Message<'a>,
    ) -> Result<Record<'a>, Failure> {
        let topic = self.topic_of(message)?;
        let too_large = |size: usize| {
            poison(
                "message_too_large",
                format!("The record takes about {size} bytes; topic {topic} accepts {limit}"),
                "Raise the topic's max.message.bytes (and the broker's limits), or make the payload smaller.",
            )
        };
        // Before the format copies it; what a schema makes of it is shorter.
        let payload = message.value(0);
        let encoder = self.encoder();
        if let Some(size) = payload.map(<[u8]>::len).filter(|size| *size > limit && encoder.is_none()) {
            return Err(too_large(size));
        }
        let formatted = self.format.of(message)?;
        let value = match (encoder, payload) {
            (Some(encoder), Some(payload)) => {
                let encoded = encoder.encode(&topic, payload, limit).map_err(|unencoded| match unencoded {
                    Unencoded::Refused(failure) => failure,
                    Unencoded::Large(size) => too_large(size),
                });
                Some(Cow::Owned(encoded?))
            }
            _ => formatted.value(payload)?,
        };
        let key = match self.key {
            None => None,
            Some(field) => Some(message.value(field).ok_or_else(|| {
                poison(
                    "null_key",
                    "The key column is NULL, so the record has no place in the order".to_owned(),
                    "Give every row a key, or use another key column.",
                )
            })?),
        };
        let (headers, size) = self.headers(relay, mark, &formatted, message)?;
        let size = OVERHEAD + size + key.map_or(0, <[u8]>::len) + value.as_ref().map_or(0, |value| value.len());
        if size > limit {
            return Err(too_large(size));
        }
        Ok(Record { topic, key, value, headers })
    }

    /// The record's headers, and about how many bytes they take.
    fn headers(
        &self,
        relay: &str,
        mark: Option<Mark>,
        formatted: &Formatted<'_>,
        message: &Message<'_>,
    ) -> Result<(OwnedHeaders, usize), Failure> {
        let created_at = message.created_at.text();
        let created_at = created_at.as_ref();
        let mut headers = OwnedHeaders::new_with_capacity(4 + self.headers.len())
            .insert(Header { key: "id", value: Some(message.id) })
            .insert(Header { key: "created_at", value: Some(created_at) })
            .insert(Header { key: "relay", value: Some(relay) });
        let mut size = message.id.len() + created_at.len() + relay.len();
        if let Some(mark) = mark {
            headers = headers.insert(Header { key: mark.as_str(), value: Some("true") });
        }
        if let Some(value) = self.traceparent.and_then(|field| message.value(field)) {
            headers = headers.insert(Header { key: "traceparent", value: Some(value) });
            size += value.len() + 16;
        }
        for (name, value) in formatted.headers() {
            headers = headers.insert(Header { key: name, value: Some(value) });
            size += name.len() + value.len() + 8;
        }
        for (name, field) in &self.headers {
            let value = message.value(*field);
            headers = headers.insert(Header { key: name, value });
            size += name.len() + value.map_or(0, <[u8]>::len) + 8;
        }
        for (name, value) in row_headers::of(self.own.and_then(|field| message.value(field)))? {
            let is_ours = OURS.contains(&name.as_str()) || self.format.owns_header(&name);
            if is_ours || self.headers.iter().any(|(configured, _)| *configured == name) {
                continue;
            }
            size += name.len() + value.as_ref().map_or(0, String::len) + 8;
            headers = headers.insert(Header { key: &name, value: value.as_deref() });
        }
        Ok((headers, size))
    }

    /// The message's key as text and its payload as it was read, even if no record can be made of it.
    pub(super) fn rendered<'a>(&self, message: &Message<'a>) -> (Option<String>, Option<Cow<'a, [u8]>>) {
        let key = self.key.and_then(|field| message.value(field));
        let key = key.map(|key| String::from_utf8_lossy(key).into_owned());
        (key, message.value(0).map(Cow::Borrowed))
    }

    /// What writes values by schemas, if the format has such.
    pub(super) fn encoder(&self) -> Option<&Encoder> {
        self.format.encoder()
    }

    /// The topic of all rows, if there is one.
    pub(super) fn topic(&self) -> Option<&str> {
        match &self.topic {
            Topic::Fixed(name) => Some(name),
            Topic::Template(..) => None,
        }
    }

    /// Whether each row names its own topic.
    pub(super) fn is_routed(&self) -> bool {
        matches!(self.topic, Topic::Template(..))
    }

    pub(super) fn topic_of<'a>(&'a self, message: &Message<'a>) -> Result<Cow<'a, str>, Failure> {
        let (template, columns) = match &self.topic {
            Topic::Fixed(name) => return Ok(Cow::Borrowed(name)),
            Topic::Template(template, columns) => (template, columns),
        };
        let name = template.render(|column| message.given(columns[column])).map_err(|error| {
            poison(template::FAILED, format!("The topic's template fails for this row: {error}"), &error.hint())
        })?;
        if is_legal_topic(&name) {
            Ok(Cow::Owned(name))
        } else {
            Err(poison(
                "invalid_topic",
                "The topic's template gives a name that Kafka does not allow".to_owned(),
                "A topic's name has 1 to 249 of the characters A-Z a-z 0-9 . _ -",
            ))
        }
    }
}

/// Whether Kafka allows a topic of this name.
#[must_use]
pub fn is_legal_topic(name: &str) -> bool {
    (1..=249).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn poison(code: &str, message: String, hint: &str) -> Failure {
    Failure {
        class: Class::Poison,
        ambiguous: false,
        code: code.to_owned(),
        message,
        hint: hint.to_owned(),
        subject: Subject::Message,
        retry_after: None,
    }
}
