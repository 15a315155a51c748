//! Debezium's outbox event router, translated.
//!
//! The names and defaults are those of Debezium 3 (its documentation: PostgreSQL connector, Outbox Event Router, Debezium Server). What
//! has no counterpart is never left out in silence: it is refused where messages would be others, and noted where they are the same.

use std::fmt::Write as _;

use anyhow::{Context as _, bail, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::settings::Settings;

const ROUTER: &str = "io.debezium.transforms.outbox.EventRouter";
const CONNECTOR: &str = "io.debezium.connector.postgresql.PostgresConnector";
const ANY: &str = "(?<routedByValue>.*)";
const ROUTED: &str = "${routedByValue}";

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

/// The tables, `schema.table`, of a list of regular expressions that are plain names.
fn tables(settings: &mut Settings) -> anyhow::Result<Vec<String>> {
    let list = settings.take("table.include.list").context(
        "table.include.list is missing: the relay reads a table by its name; which one is the outbox? Set it in the file, as schema.table",
    )?;
    let table = |item: &str| {
        let name = item.trim().replace("\\.", ".");
        let plain = name
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$'));
        match name.matches('.').count() {
            1 if plain => Ok(name),
            _ => bail!("table.include.list has {item:?}: write the name of a table, as schema.table"),
        }
    };
    list.split(',').map(table).collect()
}

/// The outbox event router's settings.
struct Router {
    id: String,
    key: String,
    payload: String,
    created_at: Option<String>,
    topic: String,
    headers: Vec<(String, String)>,
    /// The payload was written as JSON, and not as a text in JSON.
    expands: bool,
    /// A NULL payload was a null value in every format.
    tombstones: bool,
}

impl Router {
    fn take(settings: &mut Settings, notes: &mut Vec<String>) -> anyhow::Result<Self> {
        let chain = settings.take("transforms").unwrap_or_default();
        let types: Vec<(&str, Option<String>)> = chain
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| (name, settings.take(&format!("transforms.{name}.type"))))
            .collect();
        let Some(name) = types.iter().find(|(_, kind)| kind.as_deref() == Some(ROUTER)).map(|(name, _)| *name) else {
            bail!(
                "no transform has the type {ROUTER}: messages are changes of whole tables then, and outbox-relay relays the rows of an outbox \
                 (docs/COMPARISON.md says when to use which)"
            );
        };
        if let Some((other, kind)) = types.iter().find(|(other, _)| *other != name) {
            let kind = kind.as_deref().unwrap_or("no type");
            bail!(
                "transforms.{other} ({kind}) changes messages, too, and cannot be translated: take it out, and decide what replaces it"
            );
        }
        let mut option = |key: &str| settings.take(&format!("transforms.{name}.{key}"));
        let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
        let id = or(option("table.field.event.id"), "id");
        let key = or(option("table.field.event.key"), "aggregateid");
        let payload = or(option("table.field.event.payload"), "payload");
        let created_at = option("table.field.event.timestamp");
        let topic = topic(&mut option)?;
        let headers = headers(option("table.fields.additional.placement"))?;
        let expands = option("table.expand.json.payload").as_deref() == Some("true");
        let tombstones = option("route.tombstone.on.empty.payload").as_deref() == Some("true");
        let left = settings.take_all(&format!("transforms.{name}."));
        let needless = ["table.op.invalid.behavior", "table.json.payload.null.behavior", "predicate", "negate"];
        let left: Vec<String> =
            left.into_iter().map(|(key, _)| key).filter(|key| !needless.contains(&key.as_str())).collect();
        if !left.is_empty() {
            notes.push(format!("Settings of the event router that are not translated: {}.", left.join(", ")));
        }
        Ok(Self { id, key, payload, created_at, topic, headers, expands, tombstones })
    }

    /// What a table needs that Debezium did not.
    fn notes_of_tables(&self, tables: &[String]) -> Vec<String> {
        let created_at = self.created_at.as_deref().unwrap_or("created_at");
        let each = |table: &String| {
            let Self { id, .. } = self;
            let column = match &self.created_at {
                Some(_) => format!(
                    "{table}.{created_at} gives the order: it must be a timestamptz that the database sets, not the application (`check` says how sure \
                     its order is). "
                ),
                None => format!(
                    "{table} needs a column that gives the order: ALTER TABLE {table} ADD COLUMN created_at timestamptz NOT NULL DEFAULT \
                     clock_timestamp(); (it rewrites the table, and gives all present rows about the same instant). "
                ),
            };
            format!(
                "{column}And an index: CREATE UNIQUE INDEX CONCURRENTLY ON {table} ({created_at}, {id}); `check` prints what else it wants, with the SQL."
            )
        };
        tables.iter().map(each).collect()
    }

    fn relay(&self, table: &str) -> String {
        let Self { id, key, payload, topic, .. } = self;
        let name: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = name.strip_prefix("public_").unwrap_or(&name);
        let mut text = format!(
            "\n[[relay]]\nname = {}\n# Moving over without a gap begins shortly before the last row that Debezium has delivered: docs/howto/moving-over.md.\n\
             start = \"now\"\n[relay.source.stream]\ntable = {}\nid = {}\ncreated_at = {}\n[relay.sink.kafka]\ntopic = {}\nkey = {}\npayload = {{ column = {} }}\n",
            quoted(name),
            quoted(table),
            quoted(id),
            quoted(self.created_at.as_deref().unwrap_or("created_at")),
            quoted(topic),
            quoted(key),
            quoted(payload),
        );
        if !self.headers.is_empty() {
            let headers: Vec<String> = self
                .headers
                .iter()
                .map(|(header, column)| format!("{} = {}", quoted(header), quoted(column)))
                .collect();
            let _ = writeln!(text, "headers = {{ {} }}", headers.join(", "));
        }
        text
    }
}

/// The topic, perhaps as a template.
fn topic(option: &mut impl FnMut(&str) -> Option<String>) -> anyhow::Result<String> {
    let by = option("route.by.field").unwrap_or_else(|| "aggregatetype".to_owned());
    let pattern = option("route.topic.regex").unwrap_or_else(|| ANY.to_owned());
    let replacement = option("route.topic.replacement").unwrap_or_else(|| format!("outbox.event.{ROUTED}"));
    ensure!(
        pattern == ANY || !replacement.contains('$'),
        "route.topic.regex is {pattern}: only {ANY} can be translated; write the topic as a template of columns by hand"
    );
    let rest = replacement.replace(ROUTED, "");
    ensure!(!rest.contains('$'), "route.topic.replacement is {replacement}: only {ROUTED} can be translated");
    let plain = by.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    ensure!(plain || !replacement.contains(ROUTED), "route.by.field is {by}: a template needs a plain column name");
    Ok(replacement.replace(ROUTED, &format!("{{{{ {by} }}}}")))
}

/// Columns that become headers: `column:header` or `column:header:name`.
fn headers(placement: Option<String>) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for item in placement.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|item| !item.is_empty()) {
        let parts: Vec<&str> = item.split(':').collect();
        match parts[..] {
            [column, "header"] => headers.push((column.to_owned(), column.to_owned())),
            [column, "header", name] => headers.push((name.to_owned(), column.to_owned())),
            _ => bail!(
                "table.fields.additional.placement has {item}: only columns in headers can be translated; make the payload in the application, or \
                 send columns by payload = {{ columns = [...] }}"
            ),
        }
    }
    Ok(headers)
}

#[cfg(test)]
#[path = "debezium_tests.rs"]
mod tests;
