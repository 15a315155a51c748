//! `[relay.sink.…]`: exactly one sink a relay. Reads it as [`crate::sink::Config`].

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use crate::sink::custom::{self as custom_sink, Kinds};
use crate::sink::kafka::Format;
use crate::sink::{Config, Kind};
use crate::source;

mod command;
mod custom;
mod email;
mod http;
mod http_access;
pub(super) mod kafka;
mod sms;
mod sql;
mod template;
mod webhook;

pub(super) use command::write as write_command;
pub(super) use custom::{sounds_secret, without_secrets as custom_without_secrets, write as write_custom};
pub(super) use email::SECURITIES;
pub(super) use http::DEFAULT_PROVIDER_ID;
pub(super) use http_access::identity;
pub(super) use sql::EACH;

/// The sink of one's own that stands there; none, and reported, when it is wrong.
pub(super) fn own(sink: &Section<'_>, kinds: &Kinds) -> Option<custom_sink::Config> {
    sink.has("custom").then(|| custom::read(&sink.section("custom"), kinds)).flatten()
}

/// The kind of sink that stands there, if it is one; reported otherwise.
pub(super) fn kind(sink: &Section<'_>) -> Option<Kind> {
    let kinds: Vec<Kind> = present(sink).collect();
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
            sink.problem(second.name(), Wrong::new(what, "make it a relay of its own, with its own name"));
        }
    }
    None
}

fn present<'a>(sink: &'a Section<'_>) -> impl Iterator<Item = Kind> + 'a {
    Kind::ALL.iter().copied().filter(|kind| sink.has(kind.name()))
}

/// Reads every sink that stands there, so that all its problems are reported, and answers the one of that kind; `own` is one
/// that was read before.
pub(super) fn read(
    sink: &Section<'_>,
    (kind, own): (Option<Kind>, Option<custom_sink::Config>),
    deadline: Duration,
    around: kafka::Around<'_>,
) -> Option<Config> {
    let all: Vec<(Kind, Option<Config>)> = present(sink)
        .map(|each| {
            let section = sink.section(each.name());
            let config = match each {
                Kind::Kafka => kafka::read(&section, around).map(Config::Kafka),
                Kind::Http => http::read(&section, deadline).map(Config::Http),
                Kind::Sms => sms::read(&section, deadline).map(Config::Sms),
                Kind::Webhook => webhook::read(&section, deadline).map(Config::Webhook),
                Kind::Sql => sql::read(&section).map(Config::Sql),
                Kind::Command => command::read(&section).map(Config::Command),
                Kind::Custom => own.clone().map(Config::Custom),
                Kind::Email => email::read(&section, deadline).map(|config| Config::Email(Box::new(config))),
                Kind::Stdout => section.is_present().then(|| Config::Stdout(crate::sink::stdout::Config {})),
            };
            (each, config)
        })
        .collect();
    all.into_iter().find(|(each, _)| Some(*each) == kind).and_then(|(_, config)| config)
}

/// Refuses a format that the rows of this source cannot have.
pub(super) fn validate_format(sinks: &Section<'_>, source: Option<&source::Config>, sink: Option<&Config>) {
    let Some(Config::Kafka(crate::sink::kafka::Config { format: Format::Debezium(_), .. })) = sink else { return };
    if !matches!(source, None | Some(source::Config::Stream(_))) {
        let what = "an event of Debezium is of a row that was inserted: it needs [relay.source.stream]";
        let fix = "read the table by [relay.source.stream], or write format = \"row\"";
        sinks.section("kafka").problem("format", Wrong::new(what, fix));
    }
}
