//! `[relay.sink.KIND]` as TOML.

use secrecy::ExposeSecret as _;

use super::{Secrets, TomlLines, columns, oauth2, quote, texts};
use crate::config::redact::{self, HIDDEN};
use crate::config::sink::DEFAULT_PROVIDER_ID;
use crate::config::units::print_size;
use crate::config::{show_email, sink};
use crate::secret::Secret;
use crate::sink::http::Body;
use crate::sink::kafka::{CloudEvents, EventMode, Format, OnPartitionChange, Payload};

pub(super) fn write(lines: &mut TomlLines, sink: &crate::sink::Config, secrets: Secrets) {
    lines.section(&format!("[relay.sink.{}]", sink.of_kind()));
    match sink {
        crate::sink::Config::Kafka(config) => kafka(lines, config),
        crate::sink::Config::Http(config) => http(lines, config, secrets),
        crate::sink::Config::Sms(config) => sms(lines, config, secrets),
        crate::sink::Config::Webhook(config) => webhook(lines, config, secrets),
        crate::sink::Config::Sql(config) => sql(lines, config),
        crate::sink::Config::Email(config) => show_email::write(lines, config),
        crate::sink::Config::Stdout(_) => {}
        crate::sink::Config::Command(config) => sink::write_command(lines, config),
        crate::sink::Config::Custom(config) => sink::write_custom(lines, config, secrets),
    }
}

fn kafka(lines: &mut TomlLines, config: &crate::sink::kafka::Config) {
    lines.text("topic", &config.topic);
    if let Some(key) = &config.key {
        lines.text("key", key);
    }
    lines.raw("unordered", config.unordered);
    lines.text(
        "on_partition_change",
        match config.on_partition_change {
            OnPartitionChange::Halt => "halt",
            OnPartitionChange::Continue => "continue",
        },
    );
    match &config.payload {
        Payload::Row => lines.raw("payload", "{ row = true }"),
        Payload::Column(column) => lines.raw("payload", format!("{{ column = {} }}", quote(column))),
        Payload::Columns(names) => lines.raw("payload", format!("{{ columns = {} }}", columns(names))),
    }
    lines.raw("headers", texts(&config.headers, Secrets::Exposed));
    // Absent unless it was changed: it is part of the fingerprint that halts of older versions were written under.
    if config.format != Format::Row {
        lines.text("format", config.format.word());
    }
    match &config.format {
        Format::Row => {}
        Format::CloudEvents(events) => cloudevents(lines, events),
        Format::Debezium(debezium) => {
            lines.section("[relay.sink.kafka.debezium]");
            match &debezium.name {
                Some(name) => lines.text("name", name),
                None => lines.comment("name: the relay's name"),
            }
        }
        Format::Schema(schema) => sink::kafka::write_schema(lines, schema),
    }
}

fn cloudevents(lines: &mut TomlLines, events: &CloudEvents) {
    lines.section("[relay.sink.kafka.cloudevents]");
    lines.text(
        "mode",
        match events.mode {
            EventMode::Binary => "binary",
            EventMode::Structured => "structured",
        },
    );
    match &events.source {
        Some(source) => lines.text("source", source),
        None => lines.comment("source: \"/outbox-relay/\" and the relay's name"),
    }
    lines.text("type", &events.kind);
    if let Some(subject) = &events.subject {
        lines.text("subject", subject);
    }
    if let Some(dataschema) = &events.dataschema {
        lines.text("dataschema", dataschema);
    }
    lines.text("datacontenttype", &events.datacontenttype);
    if !events.extensions.is_empty() {
        lines.raw("extensions", texts(&events.extensions, Secrets::Exposed));
    }
}

fn http(lines: &mut TomlLines, config: &crate::sink::http::Config, secrets: Secrets) {
    lines.text("method", &config.method);
    lines.text("url", &if secrets == Secrets::Hidden { redact::url(&config.url) } else { config.url.clone() });
    lines.raw("headers", texts(&config.headers, secrets));
    match &config.body {
        Body::Row => lines.text("body", "row"),
        Body::Template(template) => lines.text("body", template),
        Body::Form(fields) => lines.comment(&format!("body: a form of {} fields", fields.len())),
    }
    lines.duration("timeout", config.timeout);
    if let Some(rate) = config.rate_per_second {
        lines.raw("rate_per_second", format_args!("{rate:?}"));
    }
    if let Some(memory) = config.once.key_memory {
        lines.duration("key_memory", memory);
    }
    if let Some(ask) = &config.once.ask {
        lines.text("ask", &if secrets == Secrets::Hidden { redact::url(ask) } else { ask.clone() });
    }
    if let Some(pointer) = config.once.provider_id.as_ref().filter(|pointer| *pointer != DEFAULT_PROVIDER_ID) {
        lines.text("provider_id", pointer);
    }
    http_access(lines, &config.access);
}

fn http_access(lines: &mut TomlLines, config: &crate::sink::http::access::Config) {
    if let Some(file) = &config.ca_file {
        lines.text("ca_file", &file.display().to_string());
    }
    if let Some(files) = &config.identity {
        lines.text("cert_file", &files.certificate.display().to_string());
        lines.text("key_file", &files.key.display().to_string());
    }
    if let Some(config) = &config.oauth2 {
        lines.section("[relay.sink.http.oauth2]");
        oauth2::lines(lines, config);
    }
}

fn webhook(lines: &mut TomlLines, config: &crate::sink::webhook::Config, secrets: Secrets) {
    http(lines, &config.request, secrets);
    lines.text("body_limit", &print_size(u64::try_from(config.body_limit).unwrap_or(u64::MAX)));
    let files: Vec<_> = config.secret_files.iter().map(|file| quote(&file.display().to_string())).collect();
    lines.raw("secret_files", format!("[{}]", files.join(", ")));
    let allow: Vec<_> = config.allow.iter().map(|range| quote(&range.to_string())).collect();
    lines.raw("allow", format!("[{}]", allow.join(", ")));
}

fn sql(lines: &mut TomlLines, config: &crate::sink::sql::Config) {
    lines.text("statement", &config.statement);
    if !config.parameters.is_empty() {
        lines.raw("parameters", columns(&config.parameters));
    }
    let each = sink::EACH.iter().find(|(_, each)| *each == config.each).map_or("", |(word, _)| word);
    lines.text("each", each);
}

fn sms(lines: &mut TomlLines, config: &crate::sink::sms::Config, secrets: Secrets) {
    match config.provider {
        crate::sink::sms::Provider::Twilio => lines.text("provider", "twilio"),
    }
    lines.text(
        "base_url",
        &if secrets == Secrets::Hidden { redact::url(&config.base_url) } else { config.base_url.clone() },
    );
    lines.text("account_sid", &config.account_sid);
    match &config.auth_token {
        Secret::File(path) => lines.text("auth_token_file", &path.display().to_string()),
        Secret::Value(_) if secrets == Secrets::Hidden => lines.text("auth_token", HIDDEN),
        Secret::Value(token) => lines.text("auth_token", token.expose_secret()),
    }
    lines.text("from", &config.from);
    lines.text("to", &config.to);
    lines.text("text", &config.text);
    lines.duration("timeout", config.timeout);
    if let Some(rate) = config.rate_per_second {
        lines.raw("rate_per_second", format_args!("{rate:?}"));
    }
    if let Some(memory) = config.key_memory {
        lines.duration("key_memory", memory);
    }
}
