//! Which keys of a relay's configuration name a column.

use crate::relay::Config;
use crate::sink::http::Body;
use crate::sink::kafka::{Format, Payload};
use crate::sink::template::{Mode, Template};
use crate::sink::{self, http};
use crate::source;

/// What to do about a column that the server does not know, or that this role may not read: `said` are the server's words, which
/// name it in every language.
pub(in crate::relay) fn hint(relay: &Config, said: &str, otherwise: &str) -> String {
    let keys = keys(named(relay), said);
    if keys.is_empty() {
        return value(relay, said).unwrap_or_else(|| otherwise.to_owned());
    }
    format!(
        "Correct {} of relay {}, or add the column or grant SELECT on it to the relay's role.",
        keys.join(", "),
        relay.name
    )
}

/// What to do about a constant that is no value of its column's type (class 22): only `where` has constants.
fn value(relay: &Config, said: &str) -> Option<String> {
    let (kind, has_constants) = match &relay.source {
        source::Config::Stream(stream) => ("stream", !stream.filter.is_empty()),
        source::Config::Pending(pending) => ("pending", !pending.filter.is_empty()),
        source::Config::Requests(_) | source::Config::Schedule(_) => return None,
    };
    (has_constants && said.contains("(22")).then(|| {
        format!(
            "Correct relay.source.{kind}.where of relay {}: its column cannot have this value. If an enum has lost it, give it \
             back.",
            relay.name
        )
    })
}

/// Those whose column the server's message names; the server's own hint names others that there are.
fn keys(named: Vec<(String, String)>, said: &str) -> Vec<String> {
    let message = said.split("; hint: ").next().unwrap_or(said);
    let words: Vec<&str> = message.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).collect();
    let blamed = named.into_iter().filter(|(_, column)| words.contains(&&**column));
    let mut keys: Vec<String> = blamed.map(|(key, _)| key).collect();
    keys.dedup();
    keys
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
    if let source::Config::Stream(stream) = &relay.source {
        let wheres = stream.filter.keys().map(|column| ("relay.source.stream.where".to_owned(), column.clone()));
        named.extend(wheres);
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
            if let Format::CloudEvents(events) = &kafka.format {
                found.extend(events.attributes().flat_map(|(name, text, ..)| template(&events.key(name), text)));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_that_the_server_suggests_is_not_blamed() {
        let named = [("key", "custmer"), ("payload", "id"), ("payload", "customer")];
        let named = named.map(|(key, column)| (key.to_owned(), column.to_owned())).to_vec();
        let said = "ERROR: column t.custmer does not exist (42703); hint: Perhaps you meant to reference the column \"t.customer\".";
        assert_eq!(keys(named.clone(), said), ["key"]);
        assert!(keys(named, "ERROR: permission denied for table bookings (42501)").is_empty());
    }

    #[test]
    fn templates_name_their_columns() {
        let of = |text: &str| template("to", text).into_iter().map(|(_, column)| column).collect::<Vec<_>>();
        assert_eq!(of("{{ phone }}"), ["phone"]);
        assert!(of("+15550000000").is_empty() && of("{{ phone").is_empty());
    }
}
