//! Which keys of a relay's configuration name a column.

use crate::relay::Config;
use crate::sink::http::Body;
use crate::sink::kafka::Payload;
use crate::sink::template::{Mode, Template};
use crate::sink::{self, http};
use crate::source;

/// What to do about a column that the server does not know, or that this role may not read: `said` are the server's words, which
/// name it in every language.
pub(in crate::relay) fn hint(relay: &Config, said: &str, otherwise: &str) -> String {
    let words: Vec<&str> = said.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).collect();
    let mut keys: Vec<String> =
        named(relay).into_iter().filter(|(_, column)| words.contains(&&**column)).map(|(key, _)| key).collect();
    keys.dedup();
    if keys.is_empty() {
        return otherwise.to_owned();
    }
    format!(
        "Correct {} of relay {}, or add the column or grant SELECT on it to the relay's role.",
        keys.join(", "),
        relay.name
    )
}

/// Keys and the columns that they name.
fn named(relay: &Config) -> Vec<(String, String)> {
    let mut named = Vec::new();
    if let source::Config::Pending(pending) = &relay.source {
        let mut at = |key: &str, column: &str| named.push((format!("relay.source.pending.{key}"), column.to_owned()));
        pending.key.iter().for_each(|column| at("key", column));
        at("due", &pending.due);
        pending.sent.iter().for_each(|column| at("sent", column));
        pending.filter.keys().for_each(|column| at("where", column));
    }
    let found = match &relay.sink {
        sink::Config::Kafka(kafka) => {
            let payload = match &kafka.payload {
                Payload::Row => Vec::new(),
                Payload::Column(column) => vec![column.clone()],
                Payload::Columns(columns) => columns.clone(),
            };
            let mut found: Vec<(String, String)> =
                kafka.key.iter().map(|column| ("key".to_owned(), column.clone())).collect();
            found.extend(payload.into_iter().map(|column| ("payload".to_owned(), column)));
            found.extend(kafka.headers.iter().map(|(name, column)| (format!("headers.{name}"), column.clone())));
            found.extend(template("topic", &kafka.topic));
            found
        }
        sink::Config::Http(config) => request(config),
        sink::Config::Webhook(config) => request(&config.request),
        sink::Config::Sms(config) => [("to", &config.to), ("from", &config.from), ("text", &config.text)]
            .into_iter()
            .flat_map(|(key, text)| template(key, text))
            .collect(),
        sink::Config::Sql(config) => {
            config.parameters.iter().map(|column| ("parameters".to_owned(), column.clone())).collect()
        }
        sink::Config::Email(config) => template("to", &config.to),
        sink::Config::Stdout(_) | sink::Config::Command(_) | sink::Config::Custom(_) => Vec::new(),
    };
    let kind = relay.sink.kind();
    named.extend(found.into_iter().map(|(key, column)| (format!("relay.sink.{kind}.{key}"), column)));
    named
}

fn request(config: &http::Config) -> Vec<(String, String)> {
    let mut found = template("url", &config.url);
    for (name, text) in &config.headers {
        found.extend(template(&format!("headers.{name}"), text));
    }
    match &config.body {
        Body::Row => {}
        Body::Template(text) => found.extend(template("body", text)),
        Body::Form(fields) => fields.iter().for_each(|(name, text)| found.extend(template(name, text))),
    }
    found
}

/// The columns that a template prints.
fn template(key: &str, text: &str) -> Vec<(String, String)> {
    let compiled = Template::compile(key, text, Mode::Text);
    compiled
        .map_or_else(|_| Vec::new(), |of| of.columns().iter().map(|column| (key.to_owned(), column.clone())).collect())
}
