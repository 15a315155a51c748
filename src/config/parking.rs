//! `on_poison = "park_key"`, and the keys that belong to it: `park_limit`, `park_keys` and `lane` of `[relay.turn]`.

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::relay::{Guarantee, Lanes, OnPoison, Parking};
use crate::sink::template::{Mode, Template};
use crate::sink::{self, Kind, LaneKey};

/// Reads them, and says what does not fit together.
pub(super) fn read(
    relay: &Section<'_>,
    (on_poison, guarantee, lanes): (OnPoison, Guarantee, Lanes),
    (kind, sink): (Option<Kind>, Option<&sink::Config>),
) -> Parking {
    let default = Parking::default();
    let rows = relay.read("park_limit", value::integer(1..=1_000_000)).unwrap_or(default.rows);
    let keys = relay.read("park_keys", value::integer(1..=100_000)).unwrap_or(default.keys);
    let turn = relay.section("turn");
    let lane = turn.read("lane", value::column);
    if on_poison == OnPoison::ParkKey {
        judge_lane(&turn, kind);
        judge(relay, guarantee, sink);
        return Parking { rows, keys, lane };
    }
    let (what, fix) = ("no key is parked", "write on_poison = \"park_key\", or remove it");
    for key in ["park_limit", "park_keys"] {
        if relay.has(key) {
            relay.problem(key, Wrong::new(what, fix));
        }
    }
    if turn.has("lane") && !lanes.are_used() {
        turn.problem("lane", Wrong::new("no key is parked, and nothing is sent side by side", fix));
    }
    Parking { rows, keys, lane }
}

/// The column that keys are parked by, where it is one and not the key of Kafka's records.
pub(super) fn column(on_poison: OnPoison, parking: &Parking, sink: Option<&sink::Config>) -> Option<String> {
    if on_poison != OnPoison::ParkKey || parking.lane.is_some() {
        return parking.lane.clone();
    }
    match Template::compile("to", sink?.recipient()?, Mode::Text).ok()?.columns() {
        [column] => Some(column.clone()),
        _ => None,
    }
}

fn judge_lane(turn: &Section<'_>, kind: Option<Kind>) {
    let Some(kind) = kind else { return };
    match (kind.lane_key(), turn.has("lane")) {
        (LaneKey::OfTheRecord, true) => {
            let what = "a record of Kafka has its key by [relay.sink.kafka] key";
            turn.problem("lane", Wrong::new(what, "remove it"));
        }
        (LaneKey::None, true) => {
            let what = format!("messages of the sink {kind} have no key");
            turn.problem("lane", Wrong::new(what, "remove it, and write on_poison = \"halt\" or \"dead_letter\""));
        }
        (LaneKey::Column, false) => {
            let what = "missing: on_poison = \"park_key\" needs the column whose text is a message's key";
            turn.missing("lane", what, "name it: [relay.turn] lane = \"customer\"");
        }
        (LaneKey::Receiver | LaneKey::Column, true)
        | (LaneKey::OfTheRecord | LaneKey::Receiver | LaneKey::None, false) => {}
    }
}

/// What `park_key` cannot be together with.
fn judge(relay: &Section<'_>, guarantee: Guarantee, sink: Option<&sink::Config>) {
    let source = relay.section("source");
    if let Some(queue) = ["pending", "requests", "schedule"].into_iter().find(|queue| source.has(queue)) {
        let what =
            format!("rows of [relay.source.{queue}] are sent each on their own, and no key holds another row up");
        return wrong(relay, what);
    }
    if guarantee == Guarantee::AtMostOnce {
        return wrong(relay, "not available with guarantee = \"at_most_once\"".to_owned());
    }
    match sink {
        Some(sink::Config::Kafka(kafka)) if kafka.key.is_none() => {
            let what = "the records have no key: [relay.sink.kafka] key is missing".to_owned();
            relay.problem(
                "on_poison",
                Wrong::new(what, "name the column of the key, or write \"halt\" or \"dead_letter\""),
            );
        }
        Some(sink) if sink.of_kind().lane_key() == LaneKey::None => {
            wrong(relay, "messages of this sink have no key".to_owned());
        }
        _ => {}
    }
}

fn wrong(relay: &Section<'_>, what: String) {
    relay.problem("on_poison", Wrong::new(what, "write \"halt\" or \"dead_letter\", or remove it"));
}

/// Absent unless asked for: it is part of the fingerprint that halts of older versions were written under.
pub(super) fn write(lines: &mut TomlLines, parking: &Parking) {
    let default = Parking::default();
    if parking.rows != default.rows {
        lines.raw("park_limit", parking.rows);
    }
    if parking.keys != default.keys {
        lines.raw("park_keys", parking.keys);
    }
}
