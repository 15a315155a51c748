//! Debezium's outbox event router, translated.
//!
//! The names and defaults are those of Debezium 3 (its documentation: PostgreSQL connector, Outbox Event Router, Debezium Server). What
//! has no counterpart is never left out in silence: it is refused where messages would be others, and noted where they are the same.

use std::fmt::Write as _;

use anyhow::{Context as _, bail, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

mod router;
mod tables;

use super::settings::Settings;
use router::Router;
use tables::tables;

const CONNECTOR: &str = "io.debezium.connector.postgresql.PostgresConnector";

/// Keys that say nothing about messages: how the log is read, how often, and where positions are kept.
const NEEDLESS: [&str; 31] = [
    "name",
    "tasks.max",
    "topic.prefix",
    "database.server.name",
    "plugin.name",
    "slot.",
    "publication.",
    "snapshot.",
    "heartbeat.",
    "offset.",
    "schema.history.",
    "schema.include.list",
    "max.batch.size",
    "max.queue.size",
    "max.queue.size.in.bytes",
    "poll.interval.ms",
    "status.update.interval.ms",
    "xmin.fetch.interval.ms",
    "retriable.restart.connector.wait.ms",
    "errors.",
    "flush.lsn.source",
    "lsn.flush.",
    "provide.transaction.metadata",
    "tombstones.on.delete",
    "quarkus.",
    "converter.schemas",
    "key.converter.schemas.enable",
    "value.converter.schemas.enable",
    "header.converter",
    "format.header",
    "decimal.handling.mode",
];
/// Properties of Kafka's Java producer that follow from the rest of the configuration here.
const FOLLOWING: [&str; 12] = [
    "acks",
    "enable.idempotence",
    "retries",
    "max.in.flight.requests.per.connection",
    "key.serializer",
    "value.serializer",
    "max.request.size",
    "buffer.memory",
    "batch.size",
    "delivery.timeout.ms",
    "request.timeout.ms",
    "max.block.ms",
];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// The configuration, with the notes as comments.
    pub(super) toml: String,
    /// What the user has to decide or to know.
    pub(super) notes: Vec<String>,
}

/// Translates.
///
/// # Errors
/// What cannot be translated without changing messages, by key and value.
pub(super) fn translate(mut settings: Settings) -> anyhow::Result<Translated> {
    if let Some((key, letter)) = settings.control_character(|key| !is_needless(key)) {
        bail!("{} has the control character U+{:04X}: write it without", key.escape_debug(), u32::from(letter));
    }
    let mut notes = vec![
        "The relay reads rows that are committed. An application that deletes its outbox row in the transaction that wrote it has to stop \
         doing so; docs/RETENTION.md says how rows are deleted later."
            .to_owned(),
    ];
    if let Some(class) = settings.take("connector.class") {
        ensure!(class == CONNECTOR, "connector.class is {class}: only {CONNECTOR} can be translated");
    }
    sink_kind(&mut settings)?;
    let postgres = postgres(&mut settings, &mut notes)?;
    let kafka = kafka(&mut settings, &mut notes);
    let router = Router::take(&mut settings, &mut notes)?;
    formats(&mut settings, &router, &mut notes)?;
    let tables = tables(&mut settings)?;
    notes.extend(router.notes_of_tables(&tables));
    let left = settings.left();
    let left: Vec<&str> = left.iter().map(String::as_str).filter(|key| !is_needless(key)).collect();
    if !left.is_empty() {
        notes.push(format!("Not translated: {}.", left.join(", ")));
    }
    let mut toml =
        "# Made by `outbox-relay convert debezium`. Review it, then run `outbox-relay --config FILE check`.\n"
            .to_owned();
    for note in &notes {
        let _ = write!(toml, "#\n{}", comment(note));
    }
    let _ = write!(toml, "\n{postgres}\n{kafka}\n[admin]\nlisten = \"127.0.0.1:9464\"\n");
    for table in &tables {
        toml.push_str(&router.relay(table));
    }
    Ok(Translated { toml, notes })
}

fn is_needless(key: &str) -> bool {
    NEEDLESS.iter().any(|needless| *needless == key || needless.ends_with('.') && key.starts_with(needless))
}

/// A note as comment lines of a width that is read.
fn comment(note: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in note.split(' ') {
        if lines.last().is_some_and(|line| line.len() + word.len() > 110) {
            lines.push(String::from("#"));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// As TOML has a text.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn sink_kind(settings: &mut Settings) -> anyhow::Result<()> {
    match settings.take("sink.type") {
        None => Ok(()),
        Some(kind) if kind == "kafka" => Ok(()),
        Some(kind) => {
            bail!("debezium.sink.type is {kind}: only kafka can be translated (docs/COMPARISON.md lists the sinks)")
        }
    }
}

fn postgres(settings: &mut Settings, notes: &mut Vec<String>) -> anyhow::Result<String> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let host = settings.take("database.hostname").context("database.hostname is missing")?;
    let port = settings.take("database.port").unwrap_or_else(|| "5432".to_owned());
    let database = settings.take("database.dbname").context("database.dbname is missing")?;
    let user = settings.take("database.user").context("database.user is missing")?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mode = settings.take("database.sslmode").unwrap_or_else(|| "prefer".to_owned());
    let tls = match mode.as_str() {
        "disable" | "require" | "verify-ca" | "verify-full" => format!("?sslmode={mode}"),
        _ => {
            notes.push(format!(
                "database.sslmode was {mode}, by which anybody on the way can switch TLS off. The relay verifies the server's certificate \
                 (verify-full); write ?sslmode=disable at the end of the URL for a server without TLS on a trusted network."
            ));
            String::new()
        }
    };
    let authority = settings.take("database.sslrootcert").map(|file| format!("ca_file = {}\n", quoted(&file)));
    let url = format!("postgresql://{}@{host}:{port}/{}{tls}", encoded(&user), encoded(&database));
    let mut text = format!("[postgres]\nurl = {}\n", quoted(&url));
    if settings.take("database.password").is_some() {
        text.push_str("password_file = \"/run/secrets/postgres-password\"\n");
        notes.push(
            "database.password was not copied: write it to the file of password_file, or leave that out and set PGPASSWORD.".to_owned(),
        );
    }
    text.push_str(&authority.unwrap_or_default());
    notes.push(format!(
        "The role {user} needs neither REPLICATION nor a publication; `outbox-relay migrate up --relay-role {user}` makes the schema and grants \
         what it needs."
    ));
    Ok(text)
}

/// Properties of the producer, of Debezium Server or of a connector.
fn kafka(settings: &mut Settings, notes: &mut Vec<String>) -> String {
    let mut properties = settings.take_all("sink.kafka.producer.");
    properties.extend(settings.take_all("producer.override."));
    let mut servers = None;
    let (mut password, mut lines, mut left) = (false, String::new(), Vec::new());
    for (key, value) in properties {
        match key.as_str() {
            "bootstrap.servers" => servers = Some(value),
            "sasl.jaas.config" => {
                let user = option_of(&value, "username");
                password = option_of(&value, "password").is_some();
                if let Some(user) = user {
                    let _ = writeln!(lines, "\"sasl.username\" = {}", quoted(&user));
                }
            }
            "compression.type" => {
                let _ = writeln!(lines, "\"compression.codec\" = {}", quoted(&value));
            }
            "security.protocol" | "sasl.mechanism" | "linger.ms" | "client.id" => {
                let _ = writeln!(lines, "\"{key}\" = {}", quoted(&value));
            }
            key if FOLLOWING.contains(&key) => {}
            key => left.push(key.to_owned()),
        }
    }
    let servers = servers.unwrap_or_else(|| {
        notes.push("The file does not name the brokers: set bootstrap_servers in [kafka].".to_owned());
        "127.0.0.1:9092".to_owned()
    });
    if password {
        notes.push(
            "The password of sasl.jaas.config was not copied: write it to the file of sasl_password_file.".to_owned(),
        );
    }
    if !left.is_empty() {
        notes.push(format!(
            "Producer properties that are not translated: {}. librdkafka reads certificates as PEM: ssl.ca.location, ssl.certificate.location, \
             ssl.key.location.",
            left.join(", ")
        ));
    }
    let file = if password { "sasl_password_file = \"/run/secrets/kafka-password\"\n" } else { "" };
    let properties = if lines.is_empty() { String::new() } else { format!("[kafka.properties]\n{lines}") };
    format!("[kafka]\nbootstrap_servers = {}\n{file}{properties}", quoted(&servers))
}

/// The value of an option in a JAAS configuration.
fn option_of(jaas: &str, option: &str) -> Option<String> {
    let (_, rest) = jaas.split_once(&format!("{option}=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// How keys and values were written to Kafka: the relay writes a column's text as it is.
fn formats(settings: &mut Settings, router: &Router, notes: &mut Vec<String>) -> anyhow::Result<()> {
    for (what, keys) in [("key", ["format.key", "key.converter"]), ("value", ["format.value", "value.converter"])] {
        let [server, connect] = keys.map(|key| settings.take(key).map(|value| (key, value)));
        let (name, format) = server.or(connect).unwrap_or((keys[0], "json".to_owned()));
        let plain = ["simplestring", "binary", "StringConverter", "ByteArrayConverter", "BinaryDataConverter"];
        if plain.iter().any(|plain| format == *plain || format.ends_with(plain)) {
            continue;
        }
        if format != "json" && !format.ends_with("JsonConverter") {
            bail!("{name} is {format}: only JSON and plain text can be translated");
        }
        notes.push(if what == "key" {
            format!(
                "{name} was JSON: Debezium wrote the key of a record as a JSON text, in quotation marks. The relay writes it without: the bytes are \
                 others, so records of a key may go to another partition than before. Let consumers read what was there before the switch."
            )
        } else if router.expands {
            "table.expand.json.payload: Debezium wrote the payload's JSON again: compact, without fields that are null, a fraction as the nearest \
             double, and all of it as a text in quotation marks where it is no object, or a list in it has elements of several types. The relay writes \
             the column as it is."
                .to_owned()
        } else {
            format!(
                "{name} was JSON: Debezium wrote the payload as a JSON text, perhaps in an envelope with its schema. The relay writes the column as \
                 it is: consumers have one step less to do, and must know it before the switch."
            )
        });
        // In plain formats it is a null value either way.
        if what == "value" && !router.tombstones {
            let column = &router.payload;
            notes.push(format!(
                "A row whose {column} is NULL becomes a record with a null value here, a tombstone; Debezium wrote the JSON text null."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "debezium_tests.rs"]
mod tests;
