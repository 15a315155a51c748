//! What follows from how a turn's publishing ended: advance, one row at a time, a dead letter, retry, or a halt.
//!
//! The publishing itself is `turn/publish.rs`.

use std::borrow::Cow;

use crate::cursor::dead_letter::DeadLetter;
use crate::cursor::unknown;
use crate::message::Message;
use crate::relay::engine::Engine;
use crate::relay::engine::dead_letter;
use crate::relay::engine::disposition::{ForMessage, ForRelay, Sender, at_stop, disposition};
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::relayed::Relayed;
use crate::sink::{Class, Failure, Published};

/// What follows from how a turn's publishing ended.
pub(in crate::relay) enum AfterPublish<'a> {
    /// All was acknowledged.
    Done,
    /// A row among several was refused: one by one from here.
    Search(Failure),
    /// This row is dead-lettered.
    Bury(Failure, Box<DeadLetter<'a>>),
    /// It will pass.
    Retry(Failure),
    /// An operator must correct something.
    Halt(Failure),
}

/// A row is dead-lettered only after the topic of the dead letters has its copy.
pub(in crate::relay) async fn copied<'a>(
    engine: &Engine,
    ready: &PreparedStream,
    verdict: AfterPublish<'a>,
) -> AfterPublish<'a> {
    let (AfterPublish::Bury(failure, letter), Some(letters)) = (&verdict, &ready.letters) else { return verdict };
    match dead_letter::copy(&ready.config.relay, letters, failure, letter, engine.call_deadline).await {
        Ok(()) => verdict,
        Err(failure) => stopped(failure),
    }
}

/// What follows from how publishing ended.
pub(in crate::relay) fn verdict<'a>(ready: &PreparedStream, relayed: &'a Relayed) -> AfterPublish<'a> {
    let Some(failure) = relayed.published.stopped.clone() else { return AfterPublish::Done };
    let acknowledged = relayed.published.acknowledged;
    let (on_poison, several) = (ready.config.on_poison, relayed.published.suspects > 1);
    let meaning = disposition(Sender::Stream { on_poison, several, passed: false }, &failure);
    match meaning.message {
        ForMessage::Isolated => AfterPublish::Search(failure),
        ForMessage::Fails => match relayed.locate(acknowledged) {
            Some((batch, row)) if relayed.unread => {
                let letter = dead_letter::unread(&ready.config, &batch.message(row));
                AfterPublish::Bury(failure, Box::new(letter))
            }
            Some((batch, row)) => {
                let letter = letter(ready, &batch.message(row), &failure);
                AfterPublish::Bury(failure, Box::new(letter))
            }
            None => AfterPublish::Halt(failure),
        },
        ForMessage::Blocks | ForMessage::Waits(_) | ForMessage::Unknown => stopped(failure),
    }
}

/// The row as a dead letter, with its key where keys are parked.
pub(in crate::relay) fn letter<'a>(ready: &PreparedStream, message: &Message<'a>, failure: &Failure) -> DeadLetter<'a> {
    let letter = dead_letter::letter(&ready.config, (&ready.sink, &ready.fields), message, failure);
    let key = ready.key.as_ref().and_then(|key| key.of(message)).map(Cow::into_owned);
    DeadLetter { key: letter.key.or(key), ..letter }
}

/// What follows from a failure at which the stream stops.
fn stopped<'a>(failure: Failure) -> AfterPublish<'a> {
    if at_stop(&failure).relay == ForRelay::Halts { AfterPublish::Halt(failure) } else { AfterPublish::Retry(failure) }
}

/// Why it is not known whether the message behind the acknowledged ones was accepted; none when it provably was not. No
/// other message can be in doubt: each waits for the one before it.
pub(in crate::relay) fn in_doubt(published: &Published) -> Option<Failure> {
    let failure = published.stopped.as_ref()?;
    let meaning = disposition(Sender::Redrive { passed: true }, failure);
    if meaning.message != ForMessage::Unknown {
        return None;
    }
    // What may have arrived is neither refused nor a dead letter.
    let class = if meaning.relay == ForRelay::Halts { failure.class } else { Class::Retry };
    Some(Failure { class, hint: unknown::HINT.to_owned(), ..failure.clone() })
}
