//! What a record is made like: the row as it is, or an envelope that consumers know already.

use std::borrow::Cow;

use super::cloudevents::{self, CloudEvents, Event, Events};
use super::debezium::{Change, Debezium, Envelope, Origin};
use super::schema::{Encoder, SchemaFormat};
use crate::message::Message;
use crate::sink::{Failure, InvalidSetting};

/// `format` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The payload as it is.
    #[default]
    Row,
    /// A CloudEvent with the payload as its data.
    CloudEvents(CloudEvents),
    /// A change event of Debezium, with the payload as the row after an insert.
    Debezium(Debezium),
    /// The payload, written by a schema that a registry has.
    Schema(Box<SchemaFormat>),
}

impl Format {
    /// As the configuration has it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::CloudEvents(_) => "cloudevents",
            Self::Debezium(_) => "debezium",
            Self::Schema(schema) => schema.kind.word(),
        }
    }

    /// Whether the format itself writes a header of this name.
    #[must_use]
    pub fn owns_header(&self, name: &str) -> bool {
        match self {
            Self::Row | Self::Debezium(_) | Self::Schema(_) => false,
            Self::CloudEvents(_) => cloudevents::owns_header(name),
        }
    }
}

/// The same, compiled.
#[derive(Debug)]
pub(super) enum Formatter {
    Row,
    CloudEvents(Box<Events>),
    Debezium(Box<Envelope>),
    Schema(Box<Encoder>),
}

/// What the format makes of one message, beside its value.
pub(super) enum Formatted<'a> {
    /// No more than a value.
    Row,
    CloudEvents(Event<'a>),
    Debezium(Change<'a>),
}

impl Formatter {
    /// `want` gives the number of a column's field.
    pub(super) fn new(
        format: &Format,
        relay: &str,
        want: &mut dyn FnMut(&str) -> usize,
    ) -> Result<Self, InvalidSetting> {
        Ok(match format {
            Format::Row => Self::Row,
            Format::CloudEvents(config) => Self::CloudEvents(Box::new(Events::new(config, relay, want)?)),
            Format::Debezium(config) => Self::Debezium(Box::new(Envelope::new(config, relay))),
            Format::Schema(config) => Self::Schema(Box::new(Encoder::new(config))),
        })
    }

    /// The same, for the rows of a table.
    pub(super) fn of_table(self, origin: Origin<'_>) -> Self {
        match self {
            Self::Debezium(envelope) => Self::Debezium(Box::new(envelope.of(origin))),
            Self::Row | Self::CloudEvents(_) | Self::Schema(_) => self,
        }
    }

    /// Whether the format itself writes a header of this name.
    pub(super) fn owns_header(&self, name: &str) -> bool {
        match self {
            Self::Row | Self::Debezium(_) | Self::Schema(_) => false,
            Self::CloudEvents(_) => cloudevents::owns_header(name),
        }
    }

    /// What writes values by schemas, if the format has such.
    pub(super) fn encoder(&self) -> Option<&Encoder> {
        match self {
            Self::Schema(encoder) => Some(encoder),
            Self::Row | Self::CloudEvents(_) | Self::Debezium(_) => None,
        }
    }

    /// Of a message, or why none can be made of it.
    pub(super) fn of<'a>(&'a self, message: &Message<'a>) -> Result<Formatted<'a>, Failure> {
        Ok(match self {
            Self::Row | Self::Schema(_) => Formatted::Row,
            Self::CloudEvents(events) => Formatted::CloudEvents(events.of(message)?),
            Self::Debezium(envelope) => Formatted::Debezium(envelope.change(message)),
        })
    }
}

impl Formatted<'_> {
    /// The record's value, made of the payload; of a format with schemas the payload itself.
    pub(super) fn value<'b>(&self, payload: Option<&'b [u8]>) -> Result<Option<Cow<'b, [u8]>>, Failure> {
        match self {
            Self::Row => Ok(payload.map(Cow::Borrowed)),
            Self::CloudEvents(event) => event.value(payload),
            Self::Debezium(change) => Ok(Some(Cow::Owned(change.value(payload)))),
        }
    }

    /// Headers beside the relay's own.
    pub(super) fn headers(&self) -> Vec<(&str, &[u8])> {
        match self {
            Self::Row | Self::Debezium(_) => Vec::new(),
            Self::CloudEvents(event) => event.headers(),
        }
    }
}
