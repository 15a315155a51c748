//! What is written down of a row that its receiver never accepts.

use std::borrow::Cow;
use std::time::Duration;

use crate::cursor::dead_letter::{DeadLetter, Payload};
use crate::message::{Field, Message};
use crate::relay::Config;
use crate::sink::kafka::{LetterTopic, Obituary};
use crate::sink::{Failure, Sink};

/// The place of a row that cannot be read; it can be sent again when it has been corrected.
pub(in crate::relay) fn unread<'a>(config: &Config, message: &Message<'a>) -> DeadLetter<'a> {
    DeadLetter {
        source: config.source.table().to_string(),
        created_at: message.created_at,
        message_id: message.id.to_owned(),
        sink: config.sink.kind(),
        target: config.sink.target(),
        key: None,
        payload: Payload::None,
        fields: Vec::new(),
        values: Vec::new(),
    }
}

/// All that is needed to look at a poison row, and to send it again.
pub(in crate::relay) fn letter<'a>(
    config: &Config,
    (sink, fields): (&Sink, &[Field]),
    message: &Message<'a>,
    failure: &Failure,
) -> DeadLetter<'a> {
    let (key, payload) = sink.rendered(message, failure);
    let values: Vec<_> = (0..fields.len()).map(|field| message.value(field)).collect();
    let read = |bytes: &[u8]| values.iter().position(|value| value.is_some_and(|value| std::ptr::eq(value, bytes)));
    let payload = payload.map_or(Payload::None, |payload| match &payload {
        Cow::Borrowed(bytes) => read(bytes).map_or(Payload::Made(payload), Payload::Value),
        Cow::Owned(_) => Payload::Made(payload),
    });
    DeadLetter { key, payload, fields: words(fields), values, ..unread(config, message) }
}

/// Copies a dead letter to its topic, and waits for the acknowledgement.
pub(in crate::relay) async fn copy(
    relay: &str,
    letters: &LetterTopic,
    failure: &Failure,
    letter: &DeadLetter<'_>,
    patience: Duration,
) -> Result<(), Failure> {
    let obituary = Obituary {
        relay,
        id: &letter.message_id,
        created_at: &letter.created_at.to_string(),
        sink: letter.sink,
        target: &letter.target,
        key: letter.key.as_deref(),
        payload: letter.payload(),
        failure,
    };
    letters.put(&obituary, patience).await
}

/// The fields as a dead letter names them.
pub(in crate::relay) fn words(fields: &[Field]) -> Vec<String> {
    fields.iter().map(ToString::to_string).collect()
}
