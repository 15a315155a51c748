//! The resolved configuration as TOML: what `config show` prints, and what the fingerprint is made of.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use toml::Value;

pub(super) mod oauth2;
mod sinks;

use super::redact::{self, HIDDEN};
use super::relay_section::{GUARANTEES, ON_CONFIG_CHANGE, POLICIES};
use super::units::{print_duration, print_size};
use super::{
    Config, audit_section, aws_iam, filter, lanes, parking, requests, retention, schedule, schema_registry, shards,
    show_postgres, source, table_name, telemetry, turn,
};
use crate::pace;
use crate::relay::{self, OnConfigChange, OnLateRow, Start};
use crate::sink::kafka::ClusterConfig;
use crate::source::{self as sources, Pending, RuleChoice, Stream};

/// Whether secrets stand in the text. Exposed, it is only hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    Hidden,
    Exposed,
}

/// Lines of TOML.
#[derive(Debug, Default)]
pub(super) struct TomlLines(pub(super) String);

impl TomlLines {
    pub(super) fn section(&mut self, header: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(header);
        self.0.push('\n');
    }

    pub(super) fn raw(&mut self, key: &str, value: impl Display) {
        self.0.push_str(&format!("{key} = {value}\n"));
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quote(value));
    }

    pub(super) fn duration(&mut self, key: &str, value: Duration) {
        self.text(key, &print_duration(value));
    }

    pub(super) fn comment(&mut self, text: &str) {
        self.0.push_str(&format!("# {text}\n"));
    }
}

pub(super) fn quote(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn texts(texts: &BTreeMap<String, String>, secrets: Secrets) -> String {
    if texts.is_empty() {
        return "{}".to_owned();
    }
    let pair = |(name, value): (&String, &String)| {
        let hide = secrets == Secrets::Hidden && !redact::is_plain_header(name, value);
        format!("{} = {}", quote(name), quote(if hide { HIDDEN } else { value }))
    };
    format!("{{ {} }}", texts.iter().map(pair).collect::<Vec<_>>().join(", "))
}

/// The whole configuration.
pub(super) fn all(config: &Config, secrets: Secrets) -> String {
    let mut lines = TomlLines::default();
    lines.section("[postgres]");
    show_postgres::write(&mut lines, &config.postgres, secrets);
    let mut text = lines.0;
    if let Some(cluster) = &config.kafka {
        text.push_str(&format!("\n{}", kafka(cluster, secrets)));
    }
    let mut lines = TomlLines(text);
    lines.section("[admin]");
    lines.text("listen", &config.admin.listen.to_string());
    if let Some(file) = &config.admin.token_file {
        lines.text("token_file", &file.display().to_string());
    }
    lines.raw("token_for_metrics", config.admin.token_for_metrics);
    lines.section("[metrics]");
    lines.text("phases", config.phases.as_str());
    if let Some(intake) = &config.intake {
        lines.section("[intake]");
        lines.text("listen", &intake.listen.to_string());
        lines.text("token_file", &intake.token_file.display().to_string());
        lines.text("body_limit", &print_size(u64::try_from(intake.body_limit).unwrap_or(u64::MAX)));
        lines.raw("connections", intake.connections);
        lines.duration("timeout", intake.timeout);
    }
    if let Some(config) = &config.schema_registry {
        schema_registry::write(&mut lines, config);
    }
    if let Some(config) = &config.telemetry {
        telemetry::write(&mut lines, config);
    }
    lines.section("[shutdown]");
    lines.duration("grace", config.grace);
    retention::write(&mut lines, &config.retention);
    audit_section::write(&mut lines, config.audit);
    let mut text = lines.0;
    // Its shards have one section.
    for each in config.relays.iter().filter(|relay| relay.is_first_shard()) {
        text.push_str(&format!("\n{}", relay(each, secrets)));
    }
    text
}

/// `[kafka]`.
pub(super) fn kafka(cluster: &ClusterConfig, secrets: Secrets) -> String {
    let mut lines = TomlLines::default();
    lines.section("[kafka]");
    lines.text("bootstrap_servers", &cluster.bootstrap_servers);
    if let Some(file) = &cluster.password_file {
        lines.text("sasl_password_file", &file.display().to_string());
    }
    // What the file held at the start is not shown in its place.
    let is_shown = |name: &str| cluster.password_file.is_none() || name != "sasl.password";
    let shown: Vec<_> = cluster.properties.iter().filter(|(name, _)| is_shown(name)).collect();
    if !shown.is_empty() {
        lines.section("[kafka.properties]");
    }
    for (name, value) in shown {
        let hide = secrets == Secrets::Hidden && !redact::is_plain_property(name, value);
        lines.text(&quote(name), if hide { HIDDEN } else { value });
    }
    if let Some(config) = &cluster.oauth2 {
        lines.section("[kafka.oauth2]");
        oauth2::lines(&mut lines, config);
        if !cluster.extensions.is_empty() {
            lines.raw("extensions", texts(&cluster.extensions, Secrets::Exposed));
        }
    }
    if let Some(config) = &cluster.aws_iam {
        aws_iam::write(&mut lines, config);
    }
    lines.0
}

/// One `[[relay]]`.
pub(super) fn relay(relay: &relay::Config, secrets: Secrets) -> String {
    let mut lines = TomlLines::default();
    lines.section("[[relay]]");
    lines.text("name", &relay.relay);
    // Each schedule says itself what follows.
    if !matches!(relay.source, sources::Config::Schedule(_)) {
        let guarantee =
            GUARANTEES.iter().find(|(_, guarantee)| *guarantee == relay.guarantee).map_or("", |(word, _)| word);
        lines.text("guarantee", guarantee);
        let policy = POLICIES.iter().find(|(_, policy)| *policy == relay.on_poison).map_or("", |(word, _)| word);
        lines.text("on_poison", policy);
        parking::write(&mut lines, &relay.parking);
    }
    // Absent unless asked for, as the next one: they are part of the fingerprint that halts of older versions were written under.
    if relay.on_late_row != OnLateRow::default() {
        lines.text("on_late_row", "halt");
    }
    if relay.on_config_change != OnConfigChange::default() {
        let word =
            ON_CONFIG_CHANGE.iter().find(|(_, each)| *each == relay.on_config_change).map_or("", |(word, _)| word);
        lines.text("on_config_change", word);
    }
    if let Some(topic) = &relay.dead_letter_topic {
        lines.text("dead_letter_topic", topic);
    }
    shards::write(&mut lines, relay.shard.as_ref());
    match &relay.source {
        sources::Config::Stream(stream) => source_stream(&mut lines, relay.start, stream, relay.poll.freshness),
        sources::Config::Pending(pending) => source_pending(&mut lines, pending),
        sources::Config::Requests(config) => requests::write(&mut lines, relay.on_unknown, config),
        sources::Config::Schedule(config) => schedule::write(&mut lines, config),
    }
    lines.section("[relay.turn]");
    lines.raw("rows", relay.turn.rows);
    lines.text("bytes", &print_size(u64::try_from(relay.turn.bytes).unwrap_or(u64::MAX)));
    // Absent unless it was changed: it is part of the fingerprint that halts of older versions were written under.
    if relay.turn.max_row_bytes != turn::DEFAULT_MAX_ROW_BYTES {
        lines.text("max_row_bytes", &print_size(u64::try_from(relay.turn.max_row_bytes).unwrap_or(u64::MAX)));
    }
    lines.duration("time", relay.turn.time);
    lines.duration("deadline", relay.turn.deadline);
    if let Some(lane) = &relay.parking.lane {
        lines.text("lane", lane);
    }
    lanes::write(&mut lines, &relay.lanes);
    turn::write_poll(&mut lines, &relay.poll);
    sinks::write(&mut lines, &relay.sink, secrets);
    lines.0
}

fn source_stream(lines: &mut TomlLines, start: Start, stream: &Stream, freshness: Duration) {
    match start {
        Start::Beginning => lines.text("start", "beginning"),
        Start::Now => lines.text("start", "now"),
        Start::At(at) => lines.text("start", &at.to_string()),
    }
    match (stream.latency_window, stream.horizon) {
        (Some(window), _) => lines.duration("latency_window", window),
        (None, RuleChoice::Writers) => lines.duration("latency_window", Duration::from_millis(5)),
        (None, RuleChoice::Transactions) => lines.duration("latency_window", Duration::from_millis(100)),
        (None, RuleChoice::Auto | RuleChoice::Window) => {
            lines.comment("latency_window: \"5ms\" under the rule writers, \"100ms\" under transactions");
        }
    }
    // Absent unless it was changed: it is part of the fingerprint that halts of older versions were written under.
    if freshness != pace::Config::default().freshness {
        lines.duration("freshness", freshness);
    }
    // The same.
    match stream.standbys {
        0 => {}
        1 => lines.text("durability", "standby"),
        number => lines.raw("durability", number),
    }
    if let Some(longest) = stream.max_hold {
        lines.duration("max_hold", longest);
    }
    lines.section("[relay.source.stream]");
    lines.text("table", &table_name::print(&stream.table));
    lines.text("id", &stream.id);
    lines.text("created_at", &stream.created_at);
    let rule = source::RULES.iter().find(|(_, rule)| *rule == stream.horizon).map_or("auto", |(word, _)| word);
    lines.text("horizon", rule);
    if !stream.filter.is_empty() {
        lines.raw("where", filter::print(&stream.filter));
    }
    if let Some(zone) = &stream.time_zone {
        lines.text("time_zone", zone);
    }
}

fn source_pending(lines: &mut TomlLines, pending: &Pending) {
    lines.section("[relay.source.pending]");
    lines.text("table", &table_name::print(&pending.table));
    lines.raw("key", columns(&pending.key));
    lines.text("due", &pending.due);
    lines.duration("due_after", pending.due_after);
    match &pending.sent {
        Some(sent) => lines.text("sent", sent),
        None => lines.comment("sent: none; the marks are kept in outbox.sent"),
    }
    if !pending.filter.is_empty() {
        lines.raw("where", texts(&pending.filter, Secrets::Exposed));
    }
    if let Some(zone) = &pending.time_zone {
        lines.text("time_zone", zone);
    }
    lines.raw("limit", pending.limit);
    // With lanes the one of [relay.turn] counts.
    if pending.lanes.is_none() {
        lines.raw("in_flight", pending.in_flight);
    }
}

/// Names of columns as an array.
fn columns(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", "))
}
