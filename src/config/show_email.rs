//! The resolved `[relay.sink.email]` as TOML. It holds no secret itself: the password stands in a file.

use super::show::TomlLines;
use super::sink::SECURITIES;
use crate::secret::Secret;
use crate::sink::email::{Config, Source, Texts};

pub(super) fn write(lines: &mut TomlLines, config: &Config) {
    let server = &config.server;
    lines.text("server", &server.host);
    lines.raw("port", server.port);
    let security = SECURITIES.iter().find(|(_, security)| *security == server.security).map_or("", |(word, _)| word);
    lines.text("security", security);
    if let Some((username, password)) = &server.credentials {
        lines.text("username", username);
        if let Secret::File(path) = password {
            lines.text("password_file", &path.display().to_string());
        }
    }
    if let Some(path) = &server.ca_file {
        lines.text("ca_file", &path.display().to_string());
    }
    if let Some(name) = &server.hello_name {
        lines.text("hello_name", name);
    }
    lines.duration("timeout", config.timeout);
    if let Some(rate) = config.rate_per_second {
        lines.raw("rate_per_second", format_args!("{rate:?}"));
    }
    if let Some(memory) = config.key_memory {
        lines.duration("key_memory", memory);
    }
    lines.raw("connections", config.connections);
    lines.text("from", &config.from.to_string());
    if let Some(reply_to) = &config.reply_to {
        lines.text("reply_to", &reply_to.to_string());
    }
    lines.text("to", &config.to);
    if let Some(template) = &config.template {
        lines.text("template", template);
    }
    lines.text("message_id_domain", &config.message_id_domain);
    for (name, texts) in &config.templates {
        template(lines, name, texts);
    }
}

fn template(lines: &mut TomlLines, name: &str, texts: &Texts) {
    lines.section(&format!("[relay.sink.email.templates.{name}]"));
    lines.text("subject", &texts.subject);
    for (key, source) in [("text", &texts.text), ("html", &texts.html)] {
        match source {
            Some(Source::Inline(text)) => lines.text(key, text),
            Some(Source::File(path)) => lines.text(&format!("{key}_file"), &path.display().to_string()),
            None => {}
        }
    }
}
