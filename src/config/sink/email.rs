//! `[relay.sink.email]`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::template;
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::{requests, turn, value};
use crate::secret::Secret;
use crate::sink::email::{Config, Mailbox, Security, Server, Source, Texts, ascii_domain};

pub(in crate::config) const SECURITIES: &[(&str, Security)] =
    &[("starttls", Security::StartTls), ("tls", Security::Tls), ("none", Security::None)];

const SUBMISSION: u64 = 587;
const SUBMISSION_TLS: u64 = 465;
const DEFAULT_CONNECTIONS: u64 = 2;

pub(super) fn read(section: &Section<'_>, deadline: Duration) -> Option<Config> {
    let server = read_server(section);
    let timeout = turn::read_timeout(section, deadline);
    let rate_per_second = section.read("rate_per_second", value::rate);
    let connections = section.read("connections", value::integer(1..=100)).unwrap_or(DEFAULT_CONNECTIONS);
    let from = section.require("from", value::parsed(mailbox), "write the sender: from = \"Shop <shop@example.com>\"");
    let reply_to = section.read("reply_to", value::parsed(mailbox));
    let to = section.require("to", value::parsed(template::parse), "write a template, for example \"{{ email }}\"");
    let choice = section.read("template", value::parsed(template::parse));
    let message_id_domain = section.read("message_id_domain", value::parsed(domain));
    let templates = read_templates(section, choice.as_deref());
    let from = from?;
    Some(Config {
        server: server?,
        timeout,
        rate_per_second,
        key_memory: requests::key_memory(section),
        connections: usize::try_from(connections).unwrap_or(usize::MAX),
        message_id_domain: message_id_domain.unwrap_or_else(|| from.domain().to_owned()),
        from,
        reply_to,
        to: to?,
        template: choice,
        templates,
    })
}

fn read_server(section: &Section<'_>) -> Option<Server> {
    let host = section.require("server", value::parsed(host), "write the mail server's host: \"smtp.example.com\"");
    let security = section.read("security", value::word(SECURITIES, &[])).unwrap_or(Security::StartTls);
    let default_port = if security == Security::Tls { SUBMISSION_TLS } else { SUBMISSION };
    let port = section.read("port", value::integer(1..=65535)).unwrap_or(default_port);
    if security == Security::None && host.as_ref().is_some_and(|host| !is_loopback(host)) {
        let what = "mails, and perhaps a password, would go over the network in clear";
        section.problem("security", Wrong::new(what, "write \"starttls\" or \"tls\"; \"none\" is for 127.0.0.1"));
    }
    let username = section.read("username", value::parsed(one_line));
    let password_file = section.read("password_file", value::path);
    match (section.has("username"), section.has("password_file")) {
        (true, false) => section.missing("password_file", "missing beside username", "write the path of its file"),
        (false, true) => section.missing("username", "missing beside password_file", "write the user's name"),
        (true, true) | (false, false) => {}
    }
    Some(Server {
        host: host?,
        port: u16::try_from(port).unwrap_or(u16::MAX),
        security,
        credentials: username.zip(password_file.map(Secret::File)),
        ca_file: section.read("ca_file", value::path),
        hello_name: section.read("hello_name", value::parsed(domain)),
    })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn host(text: &str) -> Result<String, Wrong> {
    if text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    let fix = "write a name or an address, without a scheme; the port has a key of its own";
    ascii_domain(text).ok_or_else(|| Wrong::new("not a host", fix))
}

fn domain(text: &str) -> Result<String, Wrong> {
    ascii_domain(text).ok_or_else(|| Wrong::new("not the name of a domain", "write it as \"mail.example.com\""))
}

fn one_line(text: &str) -> Result<String, Wrong> {
    if text.chars().any(char::is_control) {
        return Err(Wrong::new("has a control character", "remove it"));
    }
    Ok(text.to_owned())
}

fn mailbox(text: &str) -> Result<Mailbox, Wrong> {
    let fix = "write one fixed mailbox: \"shop@example.com\" or \"Shop <shop@example.com>\"";
    Mailbox::parse(text).map_err(|error| Wrong::new(format!("not a mailbox: {error}"), fix))
}

fn read_templates(section: &Section<'_>, choice: Option<&str>) -> BTreeMap<String, Texts> {
    let sections = section.named_sections("templates");
    if sections.is_empty() {
        let fix = "add [relay.sink.email.templates.welcome] with subject and text";
        section.missing("templates", "missing: a mail needs a template", fix);
    }
    if sections.len() > 1 && !section.has("template") {
        let fix = "write template = \"{{ template }}\", a column that names one of them";
        section.missing("template", "missing: there are several templates", fix);
    }
    if let Some(name) = choice.filter(|name| template::is_fixed(name))
        && !sections.iter().any(|(known, _)| *known == name)
    {
        section.problem("template", Wrong::new("no template has this name", "write the name of one of them"));
    }
    sections.iter().filter_map(|(name, section)| Some(((*name).to_owned(), read_texts(name, section)?))).collect()
}

fn read_texts(name: &str, section: &Section<'_>) -> Option<Texts> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_legal) {
        let fix = "write 1 to 100 letters, digits, underscores or hyphens";
        section.problem("", Wrong::new("not a name of a template", fix));
    }
    let subject = section.require("subject", value::parsed(subject), "write subject = \"Welcome, {{ name }}\"");
    let text = read_source(section, "text", "text_file");
    let html = read_source(section, "html", "html_file");
    if !["text", "text_file", "html", "html_file"].into_iter().any(|key| section.has(key)) {
        section.missing("text", "missing: a mail needs text or html", "write text = \"…\", or text_file with a path");
    }
    Some(Texts { subject: subject?, text, html })
}

fn subject(text: &str) -> Result<String, Wrong> {
    one_line(text)?;
    template::parse(text)
}

fn read_source(section: &Section<'_>, key: &'static str, file: &'static str) -> Option<Source> {
    let inline = section.read(key, value::parsed(template::parse));
    let path = section.read(file, value::path);
    if section.has(key) && section.has(file) {
        section.problem(file, Wrong::new(format!("the part is given twice: by {key} and by {file}"), "remove one"));
    }
    inline.map(Source::Inline).or(path.map(Source::File))
}
