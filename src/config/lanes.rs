//! `in_flight`, `lane_hold` and `window` of `[relay.turn]`: messages that are sent side by side. `lane` belongs to them, and to parked
//! keys. Rows that become due and requests are sent side by side anyway, by an `in_flight` in their source; with the one of `[relay.turn]` those of
//! one lane are in order.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::relay::{Lanes, Parking};
use crate::sink::{self, Kind};
use crate::source;
use crate::source::lane;

/// Sources whose jobs can have lanes.
const QUEUES: [&str; 2] = ["pending", "requests"];
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
        if let Some(queue) =
            QUEUES.into_iter().find(|queue| turn.has("in_flight") && relay.section("source").has(queue))
        {
            let what = format!("rows of [relay.source.{queue}] have lanes with 2 or more, and no order without");
            let fix = format!("write 2 or more, or in_flight in [relay.source.{queue}]");
            turn.problem("in_flight", Wrong::new(what, fix));
        }
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
    let queue = QUEUES.into_iter().find(|queue| source.has(queue));
    if source.has("schedule") {
        let what = "a schedule has one action at a time, and actions of different ones have no order".to_owned();
        wrong(what, "write it in [relay.source.schedule], which bounds how many actions are carried out at a time");
    } else if let Some(queue) = queue.filter(|_| kind == Some(Kind::Kafka)) {
        judge_queue(&source.section(queue), turn, queue);
        if turn.has("lane") {
            let what = "a record of Kafka has its key by [relay.sink.kafka] key";
            turn.problem("lane", Wrong::new(what, "remove it"));
        }
    } else if kind == Some(Kind::Kafka) {
        wrong("Kafka takes many records at a time, in order by partition".to_owned(), "remove it");
    } else if let Some(kind) = kind.filter(|kind| !kind.waits_for_answers()) {
        wrong(format!("messages of the sink {kind} are not sent one at a time"), "remove it");
    } else if relay.has("shards") {
        wrong("not available with shards".to_owned(), "remove one of the two");
    } else if let Some(queue) = queue {
        judge_queue(&source.section(queue), turn, queue);
    }
}

/// What a queue cannot have beside lanes.
fn judge_queue(source: &Section<'_>, turn: &Section<'_>, queue: &str) {
    if source.has("in_flight") {
        let what = "a second number beside in_flight of [relay.turn], which has rows of one lane sent in order";
        source.problem("in_flight", Wrong::new(what, "remove one of the two"));
    }
    if turn.has("lane_hold") {
        let what = format!("no key of [relay.source.{queue}] is parked");
        turn.problem("lane_hold", Wrong::new(what, "remove it"));
    }
}

/// Gives the lanes to a source whose jobs are sent each on their own.
pub(super) fn fit(
    relay: &Section<'_>,
    mut source: source::Config,
    (lanes, parking): (Lanes, &Parking),
    sink: &sink::Config,
) -> source::Config {
    if !lanes.are_used() {
        return source;
    }
    match &mut source {
        source::Config::Pending(pending) => pending.lanes = Some(of_queue(relay, parking, sink)),
        source::Config::Requests(requests) => requests.lanes = Some(of_queue(relay, parking, sink)),
        source::Config::Stream(_) | source::Config::Schedule(_) => {}
    }
    source
}

/// By what the lane of a job is found, by the database itself: a column.
fn of_queue(relay: &Section<'_>, parking: &Parking, sink: &sink::Config) -> lane::Lanes {
    let to = match sink {
        _ if parking.lane.is_some() => return lane::Lanes { column: parking.lane.clone() },
        sink::Config::Kafka(kafka) => {
            if kafka.key.is_none() {
                let what = "the records have no key: [relay.sink.kafka] key is missing";
                relay
                    .section("turn")
                    .problem("in_flight", Wrong::new(what, "name the column of the key, or remove it"));
            }
            return lane::Lanes { column: kafka.key.clone() };
        }
        sink::Config::Sms(sms) => &sms.to,
        sink::Config::Email(email) => &email.to,
        sink::Config::Http(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => return lane::Lanes { column: None },
    };
    if !to.contains("{{") && !to.contains("{%") {
        return lane::Lanes { column: None };
    }
    let column = only_column(to);
    if column.is_none() {
        let what = "missing: whom a message goes to is more than one column, which the database cannot tell lanes by";
        let fix = "name the column that tells the receivers apart: [relay.turn] lane = \"phone\"";
        relay.section("turn").missing("lane", what, fix);
    }
    lane::Lanes { column }
}

/// The column that a template prints and nothing else.
fn only_column(template: &str) -> Option<String> {
    let name = template.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
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
