//! `[relay.source]`: exactly one of `stream`, with the relay's latency window, and `pending`.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::tree::{Node, Value};
use super::{filter, pending, requests, schedule, table_name, value};
use crate::source::{Config, RuleChoice, Stream};

pub(super) const RULES: &[(&str, RuleChoice)] = &[
    ("auto", RuleChoice::Auto),
    ("writers", RuleChoice::Writers),
    ("transactions", RuleChoice::Transactions),
    ("window", RuleChoice::Window),
];

/// The column of `id` where a configuration names none.
pub const DEFAULT_ID: &str = "id";
/// The column of `created_at` where a configuration names none.
pub const DEFAULT_CREATED_AT: &str = "created_at";

/// Reads the source of a relay. `allow_loss` is the environment's word for the rule that loses rows.
pub(super) fn read(relay: &Section<'_>, allow_loss: bool) -> Option<Config> {
    let source = relay.section("source");
    if source.has("requests") {
        refuse_position(relay, &source, "requests", &["stream", "pending", "schedule"]);
        let mails = relay.section("sink").has("email");
        return requests::read(&source.section("requests"), mails).map(Config::Requests);
    }
    if source.has("schedule") {
        refuse_position(relay, &source, "schedule", &["stream", "pending"]);
        return Some(Config::Schedule(schedule::read(&source.section("schedule"))));
    }
    if !source.has("pending") {
        return stream(relay, &source.section("stream"), allow_loss).map(Config::Stream);
    }
    refuse_position(relay, &source, "pending", &["stream"]);
    pending::read(&source.section("pending")).map(Config::Pending)
}

/// Rows that are sent each on their own have no position, and a relay has one source.
fn refuse_position(relay: &Section<'_>, source: &Section<'_>, kind: &'static str, others: &[&str]) {
    for other in others.iter().filter(|other| source.has(other)) {
        let what = format!("a second source beside {other}: a relay has one");
        source.problem(kind, Wrong::new(what, "make it a relay of its own, with its own name"));
    }
    for (key, what) in [
        ("start", "due work has no beginning: every row that is due and not sent is sent"),
        ("latency_window", "due work has no order of creation that a window could guard"),
        ("durability", "due work is marked in the same database, which a failover undoes together with the row"),
        ("max_hold", "due work waits for no writer's transaction"),
    ] {
        if relay.has(key) {
            let fix =
                if kind == "pending" { "remove it; [relay.source.pending] where chooses rows" } else { "remove it" };
            relay.problem(key, Wrong::new(what, fix));
        }
    }
}

fn stream(relay: &Section<'_>, stream: &Section<'_>, allow_loss: bool) -> Option<Stream> {
    let latency_window = relay.read("latency_window", value::duration(Duration::ZERO..=Duration::from_secs(60)));
    let standbys = relay.read("durability", standbys).unwrap_or(0);
    let max_hold = relay.read("max_hold", value::duration(Duration::from_secs(1)..=Duration::from_secs(7 * 86_400)));
    if max_hold.is_some() && standbys > 0 {
        let what = "rows that come late are not kept back until a standby has them, as durability asks";
        relay.problem("max_hold", Wrong::new(what, "remove one of the two"));
    }
    let id = stream.read("id", value::column).unwrap_or_else(|| DEFAULT_ID.to_owned());
    let created_at = stream.read("created_at", value::column).unwrap_or_else(|| DEFAULT_CREATED_AT.to_owned());
    if id == created_at {
        let what = format!("id and created_at are both {id:?}");
        stream.problem("id", Wrong::new(what, "name the column that tells rows of one instant apart"));
    }
    let horizon = stream.read("horizon", value::word(RULES, &[])).unwrap_or(RuleChoice::Auto);
    if horizon == RuleChoice::Window {
        refuse_loss(relay, stream, allow_loss);
    }
    let time_zone = stream.read("time_zone", value::parsed(time_zone));
    let filter = stream.read("where", filter::read).unwrap_or_default();
    let fix = "name the table: [relay.source.stream] table = \"public.bookings\"";
    let table = stream.require("table", value::parsed(table_name::parse), fix)?;
    Some(Stream { table, id, created_at, horizon, time_zone, latency_window, standbys, max_hold, filter })
}

fn refuse_loss(relay: &Section<'_>, stream: &Section<'_>, allow_loss: bool) {
    if !allow_loss {
        let what = "a latency window alone loses rows of transactions that commit later";
        let fix = "remove it; for a comparison set the variable OUTBOX_RELAY_ALLOW_LOSS=1";
        stream.problem("horizon", Wrong::new(what, fix));
    }
    if !relay.has("latency_window") {
        let what = "missing: under the horizon \"window\" it is the only bound";
        relay.missing("latency_window", what, "write for example latency_window = \"100ms\"");
    }
}

/// `durability`: on how many standbys a row must be.
fn standbys(node: &Node) -> Result<u8, Wrong> {
    let fix = "write \"local\", \"standby\", or a number of standbys from 1 to 9";
    match &node.value {
        Value::Integer(_) => value::integer(1..=9)(node).map(|number| u8::try_from(number).unwrap_or(9)),
        Value::Text(text) => match text.as_str() {
            "local" => Ok(0),
            "standby" => Ok(1),
            text => Err(Wrong::new(format!("{text:?} is none"), fix)),
        },
        _ => Err(Wrong::new("neither a word nor a number", fix)),
    }
}

/// Whether the zone exists and has a fixed offset is PostgreSQL's to say.
pub(super) fn time_zone(text: &str) -> Result<String, Wrong> {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "_+-:/".contains(c)) {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new("no name of a time zone", "write a zone of fixed offset, for example \"UTC\" or \"Etc/GMT-2\""))
    }
}
