//! `[relay.sink.http]`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{http_access, template};
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::tree::Value;
use crate::config::{requests, turn, value};
use crate::sink::http::{Body, Config, access, once};

const METHODS: &[(&str, &str)] = &[("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH"), ("DELETE", "DELETE")];

/// Headers that the relay or its HTTP client writes itself.
const OURS: [&str; 6] = ["idempotency-key", "content-length", "transfer-encoding", "connection", "host", "expect"];

/// Where most providers put their id.
pub(in crate::config) const DEFAULT_PROVIDER_ID: &str = "/id";

pub(super) fn read(section: &Section<'_>, deadline: Duration) -> Option<Config> {
    let access = http_access::read(section);
    let config = read_request(section, deadline, METHODS, &[])?;
    let ask = section.read("ask", value::parsed(url));
    let provider_id = section.read("provider_id", value::parsed(requests::pointer));
    let provider_id = provider_id.or_else(|| Some(DEFAULT_PROVIDER_ID.to_owned()));
    Some(Config { once: once::Config { ask, provider_id, ..config.once }, access, ..config })
}

/// The request of this sink or of a preset of it, which writes the headers `signed` itself.
pub(super) fn read_request(
    section: &Section<'_>,
    deadline: Duration,
    methods: &'static [(&'static str, &'static str)],
    signed: &[&str],
) -> Option<Config> {
    let method = section.read("method", value::word(methods, &[])).unwrap_or("POST").to_owned();
    let headers = read_headers(section, signed);
    let body = match section.read("body", value::parsed(template::parse)) {
        Some(template) if template != "row" => Body::Template(template),
        _ => Body::Row,
    };
    let timeout = turn::read_timeout(section, deadline);
    let rate_per_second = section.read("rate_per_second", value::rate);
    let url = section.require("url", value::parsed(url), "write url = \"https://example.com/bookings/{{ id }}\"")?;
    let once = once::Config { key_memory: requests::key_memory(section), ..once::Config::default() };
    let access = access::Config::default();
    Some(Config { method, url, headers, body, timeout, rate_per_second, once, access })
}

/// An `http` or `https` URL, a template behind its scheme.
pub(super) fn url(text: &str) -> Result<String, Wrong> {
    let fix = "write it with scheme and host, for example \"https://example.com/{{ id }}\"";
    let text = template::parse(text)?;
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return Err(Wrong::new("not an http or https URL", fix));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || text.chars().any(char::is_control) || host.contains(' ') && template::is_fixed(host) {
        return Err(Wrong::new("names no host", fix));
    }
    if host.contains('@') {
        let fix = "take them out; send a header such as Authorization instead";
        return Err(Wrong::new("credentials in a URL are printed wherever the URL is", fix));
    }
    if text.contains('#') && template::is_fixed(&text) {
        return Err(Wrong::new("a fragment is never sent", "remove what follows #"));
    }
    Ok(text)
}

fn read_headers(section: &Section<'_>, signed: &[&str]) -> BTreeMap<String, String> {
    let headers = section.read("headers", value::texts).unwrap_or_default();
    let node = |name: &str| match &section.node("headers")?.value {
        Value::Table(table) => table.get(name).map(|(_, node)| node),
        _ => None,
    };
    for (name, template) in &headers {
        let lower = name.to_ascii_lowercase();
        let wrong =
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)) {
                Wrong::new("not a name of an HTTP header", "write letters, digits and hyphens")
            } else if OURS.contains(&lower.as_str()) || signed.contains(&lower.as_str()) {
                Wrong::new("this header is the relay's own", "remove it")
            } else if template.contains(['\r', '\n', '\0']) {
                Wrong::new("a header has one line", "remove the line break")
            } else {
                match template::parse(template) {
                    Ok(_) => continue,
                    Err(wrong) => wrong,
                }
            };
        section.problem_at(node(name), &format!("headers.{name}"), wrong);
    }
    headers
}
