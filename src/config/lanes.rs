//! `in_flight`, `lane_hold` and `window` of `[relay.turn]`: messages that are sent side by side. `lane` belongs to them, and to parked
//! keys.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::relay::Lanes;
use crate::sink::Kind;

/// Belong to `in_flight`.
const OF_LANES: [&str; 2] = ["lane_hold", "window"];

/// Reads them, and says what does not fit together.
pub(super) fn read(relay: &Section<'_>, kind: Option<Kind>) -> Lanes {
    let (turn, default) = (relay.section("turn"), Lanes::default());
    let number =
        |read: Option<u64>, default: usize| read.map_or(default, |read| usize::try_from(read).unwrap_or(default));
    let in_flight = turn.read("in_flight", value::integer(1..=1_000));
    let hold = turn.read("lane_hold", value::duration(Duration::from_secs(1)..=Duration::from_secs(86_400)));
    let window = turn.read("window", value::integer(100..=100_000));
    let is_wrong = turn.has("in_flight") && in_flight.is_none();
    let lanes = Lanes {
        in_flight: number(in_flight, default.in_flight),
        hold: hold.unwrap_or(default.hold),
        window: number(window, default.window),
    };
    if lanes.are_used() {
        judge(relay, &turn, kind);
    } else if !is_wrong {
        for key in OF_LANES.into_iter().filter(|key| turn.has(key)) {
            let what = "nothing is sent side by side: in_flight is 1";
            turn.problem(key, Wrong::new(what, "write in_flight = 50, for example, or remove it"));
        }
    }
    lanes
}

/// A turn sends no more rows than it may take.
pub(super) fn judge_rows(turn: &Section<'_>, rows: usize) {
    let in_flight = turn.node("in_flight").and_then(|node| value::integer(2..=1_000)(node).ok());
    let most = u64::try_from(rows).unwrap_or(u64::MAX);
    if let Some(in_flight) = in_flight.filter(|in_flight| *in_flight > most) {
        let what = format!("below in_flight, which is {in_flight}: no more than {rows} messages would be on their way");
        turn.problem("rows", Wrong::new(what, "remove it, or write more"));
    }
}

/// Whether more than one message may be on its way.
pub(super) fn are_asked_for(turn: &Section<'_>) -> bool {
    turn.node("in_flight").is_some_and(|node| value::integer(2..=1_000)(node).is_ok())
}

fn judge(relay: &Section<'_>, turn: &Section<'_>, kind: Option<Kind>) {
    let source = relay.section("source");
    let wrong = |what: String, fix: &str| turn.problem("in_flight", Wrong::new(what, fix));
    if let Some(queue) = ["pending", "requests", "schedule"].into_iter().find(|queue| source.has(queue)) {
        wrong(
            format!("rows of [relay.source.{queue}] are sent side by side by a key of their own"),
            &format!("write it in [relay.source.{queue}]"),
        );
    } else if kind == Some(Kind::Kafka) {
        wrong("Kafka takes many records at a time, in order by partition".to_owned(), "remove it");
    } else if let Some(kind) = kind.filter(|kind| !kind.waits_for_answers()) {
        wrong(format!("messages of the sink {kind} are not sent one at a time"), "remove it");
    } else if relay.has("shards") {
        wrong("not available with shards".to_owned(), "remove one of the two");
    }
}

/// Absent unless asked for: they are part of the fingerprint that halts of older versions were written under.
pub(super) fn write(lines: &mut TomlLines, lanes: &Lanes) {
    let default = Lanes::default();
    if lanes.in_flight != default.in_flight {
        lines.raw("in_flight", lanes.in_flight);
    }
    if lanes.hold != default.hold {
        lines.duration("lane_hold", lanes.hold);
    }
    if lanes.window != default.window {
        lines.raw("window", lanes.window);
    }
}
