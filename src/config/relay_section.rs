//! `[[relay]]`.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::tree::{Node, Value};
use super::units::print_duration;
use super::{
    delivers, filter, fingerprint, lanes, parking, preset, properties, requests, schedule, shards, sink, source, turn,
    value,
};
use crate::position::Timestamp;
use crate::relay::{Audit, Config, Guarantee, OnConfigChange, OnLateRow, OnPoison, Start};
use crate::sink::Kind;
use crate::sink::custom::Kinds;
use crate::sink::kafka::{self, ClusterConfig};

pub(super) const GUARANTEES: [(&str, Guarantee); 4] = [
    ("at_least_once", Guarantee::AtLeastOnce),
    ("at_most_once", Guarantee::AtMostOnce),
    ("deduplicated", Guarantee::Deduplicated),
    ("in_database", Guarantee::InDatabase),
];
pub(super) const ON_CONFIG_CHANGE: [(&str, OnConfigChange); 2] =
    [("wait", OnConfigChange::Wait), ("go_on", OnConfigChange::GoOn)];
const ON_LATE_ROW: [(&str, OnLateRow); 2] = [("publish", OnLateRow::Publish), ("halt", OnLateRow::Halt)];
pub(super) const POLICIES: [(&str, OnPoison); 3] =
    [("halt", OnPoison::Halt), ("dead_letter", OnPoison::DeadLetter), ("park_key", OnPoison::ParkKey)];

/// What a relay depends on beside its own section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    /// `None` when `[kafka]` is absent or wrong.
    pub(super) cluster: Option<&'a ClusterConfig>,
    /// What a sink of Kafka depends on.
    pub(super) kafka: sink::kafka::Around<'a>,
    /// Whether the rule that loses rows may be chosen.
    pub(super) allow_loss: bool,
    /// `[audit]`.
    pub(super) audit: Audit,
    /// Sinks of the program's own.
    pub(super) kinds: &'a Kinds,
}

pub(super) fn read(section: &Section<'_>, around: Surroundings<'_>) -> Option<Config> {
    let name =
        section.require("name", value::parsed(name), "name it: name = \"booking_events\"; its cursor has this name");
    // A refused request holds no other up: there is no order to be kept.
    let requests = section.section("source").has("requests");
    let scheduled = section.section("source").has("schedule");
    let policy = if requests || scheduled { OnPoison::DeadLetter } else { OnPoison::default() };
    let on_poison = section.read("on_poison", value::word(&POLICIES, &[])).unwrap_or(policy);
    let on_unknown = section.read("on_unknown", value::word(&requests::ON_UNKNOWN, &[])).unwrap_or_default();
    let on_late_row = section.read("on_late_row", value::word(&ON_LATE_ROW, &[])).unwrap_or_default();
    let dead_letter_topic = dead_letter_topic(section, on_poison, around.kafka.has_cluster);
    let source = source::read(section, around.allow_loss);
    let sinks = section.section("sink");
    let kind = sink::kind(&sinks);
    let own = sink::own(&sinks, around.kinds);
    let reaches_people = kind.is_some_and(Kind::may_be_one_by_one);
    let one_by_one = own.as_ref().map_or(reaches_people, |own| own.description.one_by_one);
    let guarantee = guarantee(section, kind, requests);
    judge_source(section, (kind, scheduled), guarantee);
    let pending = section.section("source").has("pending");
    refuse_pairs(&sinks, kind, pending, scheduled);
    // Of due work every row is meant; that `start` is refused there is said with the source.
    let start =
        if pending || requests || scheduled { Some(Start::Beginning) } else { read_start(section, reaches_people) };
    let turn = turn::read(&section.section("turn"), one_by_one);
    let poll = turn::read_poll(section);
    turn::judge_notify(section, &poll);
    let sink = sink::read(&sinks, (kind, own), turn.deadline, around.kafka);

    let cluster = around.cluster.filter(|_| kind.is_some_and(Kind::goes_to_cluster));
    check_deadline(section, (cluster, sink.as_ref()), &turn);
    requests::judge(section, requests, guarantee, on_unknown, sink.as_ref());
    sink::validate_format(&sinks, source.as_ref(), sink.as_ref());
    let lanes = lanes::read(section, kind);
    let parking = parking::read(section, (on_poison, guarantee, lanes), (kind, sink.as_ref()));
    let shards = shards::read(section, source.as_ref(), sink.as_ref(), (on_poison, &parking));
    let sink = sink?;
    let secret_files = fingerprint::secret_files(&sink, cluster);
    let name = name?;
    let mut config = Config {
        relay: name.clone(),
        name,
        shard: shards.map(shards::Shards::first),
        guarantee,
        start: start?,
        source: lanes::fit(section, requests::fit(section, source?, &sink), (lanes, &parking), &sink),
        sink,
        on_poison,
        parking,
        lanes,
        on_late_row,
        on_unknown,
        dead_letter_topic,
        turn,
        poll,
        fingerprint: String::new(),
        secret_files,
        delivers: String::new(),
        audit: around.audit,
        on_config_change: section.read("on_config_change", value::word(&ON_CONFIG_CHANGE, &[])).unwrap_or_default(),
    };
    config.fingerprint = fingerprint::fingerprint(&config, cluster);
    config.delivers = delivers::digest(&config, around.cluster);
    Some(config)
}

/// What a kind of source cannot be together with.
fn judge_source(section: &Section<'_>, (kind, scheduled): (Option<Kind>, bool), guarantee: Guarantee) {
    preset::judge(section, kind);
    if scheduled {
        schedule::judge(section);
    }
    filter::judge(section, guarantee);
}

/// Refuses sinks that cannot serve this kind of source.
fn refuse_pairs(sinks: &Section<'_>, kind: Option<Kind>, pending: bool, scheduled: bool) {
    if pending && kind == Some(Kind::Sql) {
        let what = "not available with [relay.source.pending]";
        sinks.problem("sql", Wrong::new(what, "read the table by [relay.source.stream]"));
    }
    if kind == Some(Kind::Command) && !scheduled {
        let what = "a command is started by a schedule: rows of a table start no programs";
        sinks.problem("command", Wrong::new(what, "read [relay.source.schedule], or use another sink"));
    }
}

/// A statement runs in the cursor's transaction, and nothing else does.
fn guarantee(section: &Section<'_>, kind: Option<Kind>, requests: bool) -> Guarantee {
    // What is no word at all is answered by those that fit this relay.
    let fitting: &'static [(&'static str, Guarantee)] = match kind {
        _ if requests => &GUARANTEES[2..3],
        Some(Kind::Sql) => &GUARANTEES[3..],
        _ => &GUARANTEES[..2],
    };
    let later = &["transactional"];
    let known = |node: &Node| value::word(&GUARANTEES, later)(node).or_else(|_| value::word(fitting, later)(node));
    let given = section.read("guarantee", known);
    if requests {
        return given.unwrap_or(Guarantee::Deduplicated);
    }
    let wrong = match (kind, given) {
        (Some(Kind::Sql), None | Some(Guarantee::InDatabase)) => return Guarantee::InDatabase,
        (Some(Kind::Sql), Some(Guarantee::AtLeastOnce | Guarantee::AtMostOnce | Guarantee::Deduplicated)) => {
            Wrong::new(
                "a statement and the advance over its rows are one transaction, whatever else is asked for",
                "write \"in_database\", or remove the key",
            )
        }
        (Some(_), Some(Guarantee::InDatabase)) => Wrong::new(
            "only [relay.sink.sql] changes this database in the cursor's own transaction",
            "write \"at_least_once\" or \"at_most_once\", or remove the key",
        ),
        (None, _) | (_, None | Some(Guarantee::AtLeastOnce | Guarantee::AtMostOnce | Guarantee::Deduplicated)) => {
            return given.unwrap_or_default();
        }
    };
    section.problem("guarantee", wrong);
    given.unwrap_or_default()
}

fn dead_letter_topic(section: &Section<'_>, on_poison: OnPoison, has_cluster: bool) -> Option<String> {
    let topic = section.read("dead_letter_topic", value::parsed(topic))?;
    if on_poison == OnPoison::Halt {
        let what = "no row becomes a dead letter";
        section
            .problem("dead_letter_topic", Wrong::new(what, "write on_poison = \"dead_letter\", or remove the topic"));
    } else if !has_cluster {
        section.problem("dead_letter_topic", Wrong::new("a topic needs a cluster", "add [kafka] bootstrap_servers"));
    }
    Some(topic)
}

fn topic(text: &str) -> Result<String, Wrong> {
    if kafka::is_legal_topic(text) {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new("not a name of a topic", "write 1 to 249 of the characters A-Z a-z 0-9 . _ -"))
    }
}

/// Whether the relay's sink sends one by one, or may, whatever else is wrong with it.
pub(super) fn is_one_by_one(relay: &Section<'_>) -> bool {
    match relay.node("sink") {
        Some(Node { value: Value::Table(sinks), .. }) => {
            sinks.keys().any(|kind| Kind::of_name(kind).is_some_and(Kind::may_be_one_by_one))
        }
        _ => false,
    }
}

/// A name for a relay, on the command line.
///
/// # Errors
/// What a name may hold.
pub fn relay_name(text: &str) -> Result<String, String> {
    name(text).map_err(|wrong| format!("{}: {}", wrong.what, wrong.fix))
}

/// `#` is left to the numbers of shards.
fn name(text: &str) -> Result<String, Wrong> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if text.len() <= 100 && text.chars().all(is_legal) {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new("not a name of a relay", "write 1 to 100 letters, digits, dots, underscores or hyphens"))
    }
}

fn read_start(section: &Section<'_>, must_be_written: bool) -> Option<Start> {
    if section.has("start") {
        return section.read("start", start);
    }
    if must_be_written {
        let what = "missing: this sink reaches people, who would get every row there ever was";
        section.missing("start", what, "write start = \"now\", or \"beginning\" if that is meant");
        return None;
    }
    Some(Start::Beginning)
}

fn start(node: &Node) -> Result<Start, Wrong> {
    let fix = "write \"beginning\", \"now\" or an instant such as \"2026-11-21T08:00:00Z\"";
    let text = match &node.value {
        Value::Instant(text) => text.clone(),
        _ => value::text(node)?,
    };
    match text.as_str() {
        "beginning" => Ok(Start::Beginning),
        "now" => Ok(Start::Now),
        text => Timestamp::parse_rfc3339(text)
            .map(Start::At)
            .map_err(|error| Wrong::new(format!("neither a known word nor an RFC 3339 instant ({error})"), fix)),
    }
}

/// What a turn waits for must come before its deadline.
fn check_deadline(
    section: &Section<'_>,
    (cluster, sink): (Option<&ClusterConfig>, Option<&crate::sink::Config>),
    turn: &crate::relay::TurnConfig,
) {
    check_linger(section, cluster, turn);
    check_registry(section, sink, turn.deadline);
}

/// The last record of a turn waits for company before it is sent, and must still be acknowledged in time.
fn check_linger(section: &Section<'_>, cluster: Option<&ClusterConfig>, turn: &crate::relay::TurnConfig) {
    let Some(cluster) = cluster else { return };
    let linger = properties::linger_ms(&cluster.properties);
    let left = turn.deadline.saturating_sub(turn.time);
    if left.is_zero() || linger < left.as_secs_f64() * 1000.0 {
        return;
    }
    let what = format!(
        "records wait {linger} ms (kafka.properties.linger.ms), but time and deadline of a turn leave only {}",
        print_duration(left)
    );
    let at = section.section("turn");
    let key = if at.has("deadline") { "deadline" } else { "time" };
    at.problem(key, Wrong::new(what, "write a shorter linger.ms or a longer deadline"));
}

/// A row whose schema is not known, or that does not fit, waits for the registry: its answer must still be inside the turn.
fn check_registry(section: &Section<'_>, sink: Option<&crate::sink::Config>, deadline: Duration) {
    let Some(schema) = sink.and_then(fingerprint::schema) else { return };
    let (timeout, longest) = (schema.registry.timeout, deadline * 3 / 5);
    if timeout <= longest {
        return;
    }
    let what = format!(
        "3/5 of it are {}, and the schema registry may take {} to answer (schema_registry.timeout)",
        print_duration(longest),
        print_duration(timeout)
    );
    let fix = format!(
        "write at least deadline = \"{}\", or [schema_registry] timeout = \"{}\"",
        print_duration(turn::deadline_for(timeout)),
        print_duration(longest)
    );
    section.section("turn").problem("deadline", Wrong::new(what, fix));
}
