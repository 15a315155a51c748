//! `[[relay]] preset`: keys that a relay has without writing them. What is written wins.

use super::problem::{Place, Wrong};
use super::section::Section;
use super::tree::{Node, TomlTable, Value};
use super::value;
use crate::sink::Kind;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Preset {
    /// The columns of Debezium's outbox event router, to the topics that it makes of them.
    DebeziumOutbox,
}

const WORDS: &[(&str, Preset)] = &[("debezium_outbox", Preset::DebeziumOutbox)];

/// Adds the keys of each relay's preset that do not stand there, before any is read.
pub(super) fn apply(root: &mut TomlTable) {
    let Some((_, Node { value: Value::Array(relays), .. })) = root.get_mut("relay") else { return };
    for relay in relays {
        let Value::Table(relay) = &mut relay.value else { continue };
        let Some((place, node)) = relay.get("preset").cloned() else { continue };
        if value::word(WORDS, &[])(&node).ok() != Some(Preset::DebeziumOutbox) {
            continue;
        }
        let Some(sink) = below(relay, "sink", &place) else { continue };
        // Beside another sink it would be a second one; `judge` reports that the preset does not fit there.
        if Kind::ALL.iter().any(|kind| *kind != Kind::Kafka && sink.contains_key(kind.name())) {
            continue;
        }
        let Some(kafka) = below(sink, "kafka", &place) else { continue };
        let text = |text: &str| Value::Text(text.to_owned());
        let payload = Node { place: place.clone(), value: text("payload") };
        let payload = Value::Table([("column".to_owned(), (place.clone(), payload))].into());
        // Rows are in the order of a key, or in none.
        let key = if kafka.contains_key("unordered") { None } else { Some(("key", text("aggregateid"))) };
        let topic = ("topic", text("outbox.event.{{ aggregatetype }}"));
        for (key, value) in [topic, ("payload", payload)].into_iter().chain(key) {
            let node = Node { place: place.clone(), value };
            kafka.entry(key.to_owned()).or_insert_with(|| (place.clone(), node));
        }
    }
}

/// The table below that key, made if it is not there; none where something else is.
fn below<'a>(table: &'a mut TomlTable, key: &str, place: &Place) -> Option<&'a mut TomlTable> {
    let empty = || (place.clone(), Node { place: place.clone(), value: Value::Table(TomlTable::new()) });
    match &mut table.entry(key.to_owned()).or_insert_with(empty).1.value {
        Value::Table(below) => Some(below),
        _ => None,
    }
}

/// Says what is wrong with the preset, or does not fit to it.
pub(super) fn judge(relay: &Section<'_>, kind: Option<Kind>) {
    let preset = relay.read("preset", value::word(WORDS, &[]));
    let sources = relay.section("source");
    let wrong = if preset.is_none() || kind.is_none() {
        return;
    } else if kind != Some(Kind::Kafka) {
        Wrong::new("a preset of [relay.sink.kafka] beside another sink", "remove one of the two")
    } else if let Some(queue) = ["pending", "requests", "schedule"].into_iter().find(|queue| sources.has(queue)) {
        Wrong::new(format!("a preset of a stream beside [relay.source.{queue}]"), "remove one of the two")
    } else {
        return;
    };
    relay.problem("preset", wrong);
}
