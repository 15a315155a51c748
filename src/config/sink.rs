//! `[relay.sink.…]`: exactly one sink a relay.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use crate::sink::Config;
use crate::sink::custom::{self as custom_sink, Kinds};

mod command;
mod custom;
mod email;
mod http;
mod kafka;
mod sms;
mod sql;
mod template;
mod webhook;

pub(super) use command::write as write_command;
pub(super) use custom::{sounds_secret, without_secrets as custom_without_secrets, write as write_custom};
pub(super) use email::SECURITIES;
pub(super) use http::DEFAULT_PROVIDER_ID;
pub(super) use sql::EACH;

const KINDS: [&str; 9] = ["kafka", "http", "sms", "webhook", "email", "sql", "stdout", "command", "custom"];

/// Kinds that send messages one by one, to people or their systems.
const ONE_BY_ONE: [&str; 5] = ["http", "sms", "webhook", "email", "command"];

/// Whether this kind sends one by one, or may: of a sink of one's own only the sink itself knows.
pub(super) fn may_be_one_by_one(kind: &str) -> bool {
    kind == "custom" || ONE_BY_ONE.contains(&kind)
}

/// The sink of one's own that stands there; none, and reported, when it is wrong.
pub(super) fn own(sink: &Section<'_>, kinds: &Kinds) -> Option<custom_sink::Config> {
    sink.has("custom").then(|| custom::read(&sink.section("custom"), kinds)).flatten()
}

/// The kind of sink that stands there, if it is one; reported otherwise.
pub(super) fn kind(sink: &Section<'_>) -> Option<&'static str> {
    let kinds: Vec<&'static str> = KINDS.into_iter().filter(|kind| sink.has(kind)).collect();
    match kinds[..] {
        [kind] => return Some(kind),
        // What stands there instead of a sink is reported by its name.
        [] if !sink.is_empty() => {}
        [] => sink.missing(
            "",
            "missing: a relay needs a sink",
            "add one of [relay.sink.kafka], .http, .sms, .webhook, .email, .sql, .stdout; or, for a schedule, .command",
        ),
        [first, second, ..] => {
            let what = format!("a second sink beside {first}: a relay has one");
            sink.problem(second, Wrong::new(what, "make it a relay of its own, with its own name"));
        }
    }
    None
}

/// Reads every sink that stands there, so that all its problems are reported, and answers the one of that kind; `own` is one
/// that was read before.
pub(super) fn read(
    sink: &Section<'_>,
    (kind, own): (Option<&str>, Option<custom_sink::Config>),
    deadline: Duration,
    has_cluster: bool,
) -> Option<Config> {
    let mut configs = KINDS.into_iter().filter(|kind| sink.has(kind)).map(|each| {
        let section = sink.section(each);
        let config = match each {
            "kafka" => kafka::read(&section, has_cluster).map(Config::Kafka),
            "http" => http::read(&section, deadline).map(Config::Http),
            "sms" => sms::read(&section, deadline).map(Config::Sms),
            "webhook" => webhook::read(&section, deadline).map(Config::Webhook),
            "sql" => sql::read(&section).map(Config::Sql),
            "command" => command::read(&section).map(Config::Command),
            "custom" => own.clone().map(Config::Custom),
            "email" => email::read(&section, deadline).map(|config| Config::Email(Box::new(config))),
            "stdout" => section.is_present().then(|| Config::Stdout(crate::sink::stdout::Config {})),
            // A kind of KINDS without a reader must not become another one.
            _ => None,
        };
        (each, config)
    });
    let all: Vec<_> = configs.by_ref().collect();
    all.into_iter().find(|(each, _)| Some(*each) == kind).and_then(|(_, config)| config)
}
