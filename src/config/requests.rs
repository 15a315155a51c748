//! `[relay.source.requests]`, and what goes with it.

use std::time::Duration;

use super::pending::{DEFAULT_IN_FLIGHT, DEFAULT_LIMIT};
use super::problem::Wrong;
use super::section::Section;
use super::show::{TomlLines, quote};
use super::value;
use crate::relay::{self, Guarantee, OnUnknown};
use crate::sink;
use crate::source::{Config, Requests};

pub(super) const ON_UNKNOWN: [(&str, OnUnknown); 3] =
    [("resend", OnUnknown::Resend), ("ask", OnUnknown::Ask), ("dead_letter", OnUnknown::DeadLetter)];

/// `mails`: the relay's sink names templates of its own, which are meant unless others are written.
pub(super) fn read(section: &Section<'_>, mails: bool) -> Option<Requests> {
    let limit = section.read("limit", value::integer(1..=10_000)).unwrap_or(DEFAULT_LIMIT);
    let in_flight = section.read("in_flight", value::integer(1..=100)).unwrap_or(DEFAULT_IN_FLIGHT);
    let fix = "name what can be requested: templates = [\"welcome\"]";
    let templates = match section.has("templates") || !mails {
        true => section.require("templates", value::columns, fix)?,
        false => Vec::new(),
    };
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Some(Requests::new(templates, number(limit), number(in_flight)))
}

/// Gives the templates that a sink for email has to a source that names none; those that it has not are reported.
pub(super) fn fit(relay: &Section<'_>, source: Config, sink: &sink::Config) -> Config {
    let (Config::Requests(mut requests), sink::Config::Email(email)) = (source.clone(), sink) else { return source };
    if requests.templates.is_empty() {
        requests.templates = email.templates.keys().cloned().collect();
    }
    for template in requests.templates.iter().filter(|name| !email.templates.contains_key(*name)) {
        let section = relay.section("source").section("requests");
        let fix = format!("write [relay.sink.email.templates.{template}], or take it out of the list");
        section.problem("templates", Wrong::new(format!("the sink has no template {template:?}"), fix));
    }
    Config::Requests(requests)
}

/// As it was understood.
pub(super) fn write(lines: &mut TomlLines, on_unknown: OnUnknown, requests: &Requests) {
    let word = ON_UNKNOWN.iter().find(|(_, policy)| *policy == on_unknown).map_or("", |(word, _)| word);
    lines.text("on_unknown", word);
    lines.section("[relay.source.requests]");
    let templates: Vec<_> = requests.templates.iter().map(|template| quote(template)).collect();
    lines.raw("templates", format!("[{}]", templates.join(", ")));
    lines.raw("limit", requests.limit);
    if requests.lanes.is_none() {
        lines.raw("in_flight", requests.in_flight);
    }
}

/// A template is sent by one relay.
pub(super) fn refuse_twins(relays: &[(&Section<'_>, relay::Config)]) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (section, relay) in relays {
        let Config::Requests(requests) = &relay.source else { continue };
        for template in &requests.templates {
            if let Some((_, other)) = seen.iter().find(|(name, _)| name == template) {
                let what = format!("template {template:?} is one of relay {other} already");
                let at = section.section("source").section("requests");
                at.problem("templates", Wrong::new(what, "give it another name in one of the two"));
            } else {
                seen.push((template, &relay.name));
            }
        }
    }
}

/// What a relay of requests can be, and what no other relay can.
pub(super) fn judge(
    relay: &Section<'_>,
    is_requests: bool,
    guarantee: Guarantee,
    on_unknown: OnUnknown,
    sink: Option<&sink::Config>,
) {
    if !is_requests {
        let source = "this is for requests that are sent once";
        if guarantee == Guarantee::Deduplicated {
            let fix = "add [relay.source.requests], or choose at_least_once or at_most_once";
            relay.problem("guarantee", Wrong::new(source, fix));
        }
        if relay.has("on_unknown") {
            relay.problem("on_unknown", Wrong::new(source, "remove it"));
        }
        for (kind, key) in [
            ("http", "key_memory"),
            ("http", "ask"),
            ("http", "provider_id"),
            ("webhook", "key_memory"),
            ("sms", "key_memory"),
            ("email", "key_memory"),
        ] {
            let section = relay.section("sink").section(kind);
            if section.has(key) {
                section.problem(key, Wrong::new(source, "remove it, or add [relay.source.requests]"));
            }
        }
        return;
    }
    if relay.has("guarantee") && guarantee != Guarantee::Deduplicated {
        let fix = "write guarantee = \"deduplicated\", or remove the line";
        relay.problem("guarantee", Wrong::new("requests are sent once or not at all: nothing else fits them", fix));
    }
    if relay.has("dead_letter_topic") {
        let fix = "remove it: a request that failed stays in outbox.request, and the next call sees it there";
        relay.problem("dead_letter_topic", Wrong::new("requests have no dead letters", fix));
    }
    let (memory, can_ask) = match sink {
        None => return,
        Some(sink::Config::Http(http)) => (http.once.key_memory, http.once.ask.is_some()),
        Some(sink::Config::Webhook(webhook)) => (webhook.request.once.key_memory, false),
        Some(sink::Config::Sms(sms)) => (sms.key_memory, false),
        Some(sink::Config::Email(email)) => (email.key_memory, false),
        Some(sink::Config::Custom(custom)) => (custom.description.key_memory, false),
        Some(sink::Config::Kafka(_) | sink::Config::Sql(_) | sink::Config::Stdout(_) | sink::Config::Command(_)) => {
            let fix =
                "use a sink of kind http, sms, webhook, email or custom, or relay a table by [relay.source.stream]";
            relay.problem("source.requests", Wrong::new("this sink has no way to send a message once", fix));
            return;
        }
    };
    if on_unknown == OnUnknown::Ask && !can_ask {
        let fix = "write [relay.sink.http] ask = \"https://…/{{ request_id }}\", or choose resend or dead_letter";
        relay.problem("on_unknown", Wrong::new("ask: this sink does not say where", fix));
    }
    if on_unknown == OnUnknown::Resend && memory.is_none() {
        let fix = "write how long the receiver remembers an Idempotency-Key into its sink, or for how long it may get the same \
                    again, for example key_memory = \"24h\"; or choose dead_letter";
        relay.problem("on_unknown", Wrong::new("resend: nothing says for how long a key is remembered", fix));
    }
}

/// `key_memory` of a sink: how long the receiver remembers an idempotency key.
pub(super) fn key_memory(sink: &Section<'_>) -> Option<Duration> {
    sink.read("key_memory", value::duration(Duration::from_secs(60)..=Duration::from_secs(3650 * 86_400)))
}

/// A pointer into a JSON document, by RFC 6901.
pub(super) fn pointer(text: &str) -> Result<String, Wrong> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new("no JSON pointer", "begin it with a slash, for example \"/id\" or \"/data/id\""))
    }
}
