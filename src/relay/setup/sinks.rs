//! From a relay's configuration to its sink.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::database::{Fragile, Loan};
use crate::message::{ColumnType, Field};
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::row_key::RowKey;
use crate::relay::{Config, OnPoison};
use crate::sink::command::CommandSink;
use crate::sink::custom::Adapter;
use crate::sink::email::EmailSink;
use crate::sink::http::HttpSink;
use crate::sink::kafka::{self, KafkaSink, LetterTopic, Origin, Passed};
use crate::sink::sql::SqlSink;
use crate::sink::stdout::StdoutSink;
use crate::sink::{self, Class, Failure, InvalidSetting, Sink, custom};
use crate::source;
use crate::source::shape::Shape;

/// A record's size limit where the topic's own cannot be read.
const UNKNOWN_LIMIT: usize = 1_000_000;

/// What a sink must know of the table.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct KnownTable<'a> {
    /// Its columns that become headers.
    pub(in crate::relay) passed: Passed,
    /// Its columns' types.
    pub(in crate::relay) columns: &'a BTreeMap<String, ColumnType>,
}

impl<'a> KnownTable<'a> {
    pub(in crate::relay) const fn of(shape: &'a Shape) -> Self {
        Self { passed: Passed { traceparent: shape.traceparent, headers: shape.headers }, columns: &shape.columns }
    }

    /// Of a table of due work: no sink of theirs asks for types.
    pub(in crate::relay) fn of_due(traceparent: bool) -> Self {
        static NONE: BTreeMap<String, ColumnType> = BTreeMap::new();
        Self { passed: Passed { traceparent, headers: false }, columns: &NONE }
    }
}

/// Makes a relay's sink, and asks its server what must be known of it.
pub(in crate::relay) async fn make(
    engine: &Arc<Engine>,
    config: &Config,
    table: KnownTable<'_>,
) -> Result<Sink, Unready> {
    match &config.sink {
        sink::Config::Kafka(kafka) => kafka_sink(engine, config, kafka, table.passed).await,
        sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_) => local_sink(config, table).map_err(|invalid| Unready::invalid(&invalid)),
        sink::Config::Custom(custom) => custom_sink(config, custom, engine.call_deadline).await.map_err(Unready::from),
    }
}

/// A sink that is made without asking any server.
fn local_sink(config: &Config, table: KnownTable<'_>) -> Result<Sink, Vec<InvalidSetting>> {
    match &config.sink {
        sink::Config::Http(http) => {
            HttpSink::new(http, &config.relay).map(|sink| Sink::Http(sink.passing_on(table.passed.headers)))
        }
        sink::Config::Sms(sms) => sink::sms::sink(sms, &config.relay).map(Sink::Http),
        sink::Config::Webhook(webhook) => {
            sink::webhook::sink(webhook, &config.relay).map(|sink| Sink::Http(sink.passing_on(table.passed.headers)))
        }
        sink::Config::Sql(sql) => SqlSink::new(sql, table.columns).map(Sink::Sql),
        sink::Config::Email(email) => EmailSink::new(email, &config.relay).map(Sink::Email),
        sink::Config::Stdout(stdout) => Ok(Sink::Stdout(StdoutSink::new(stdout, &config.relay))),
        sink::Config::Command(command) => CommandSink::new(command).map(Sink::Command),
        sink::Config::Custom(custom) => Ok(Sink::Custom(Adapter::new(custom, &config.relay))),
        sink::Config::Kafka(_) => Err(Vec::new()),
    }
}

/// A sink of one's own that an operator must fix runs no turn. One whose receiver is away does: its circuit opens.
async fn custom_sink(config: &Config, custom: &custom::Config, patience: Duration) -> Result<Sink, Failure> {
    let sink = Adapter::new(custom, &config.relay);
    match sink.check(patience).await {
        Err(failure) if failure.class == Class::Fatal => Err(failure),
        Ok(()) | Err(_) => Ok(Sink::Custom(sink)),
    }
}

/// What a relay's sink will read of each row, without asking any server.
///
/// # Errors
/// Settings that cannot work.
pub(in crate::relay) fn fields(config: &Config, table: KnownTable<'_>) -> Result<Vec<Field>, Vec<InvalidSetting>> {
    let fields = match &config.sink {
        sink::Config::Kafka(kafka) => kafka.fields(table.passed).map_err(|invalid| vec![invalid]),
        sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => local_sink(config, table).map(|sink| sink.fields().to_vec()),
    }?;
    Ok(read_of_each_row(config, fields).0)
}

/// What is read of each row: what the sink needs, behind it what makes the key where keys are parked or messages sent side by side, and at the end whether the row
/// matches where some are left out.
pub(in crate::relay) fn read_of_each_row(config: &Config, mut fields: Vec<Field>) -> (Vec<Field>, Option<RowKey>) {
    let is_used = config.on_poison == OnPoison::ParkKey || config.lanes.are_used();
    let key = if is_used { RowKey::new(config, &mut fields) } else { None };
    if matches!(&config.source, source::Config::Stream(stream) if !stream.filter.is_empty()) {
        fields.push(Field::Matches);
    }
    (fields, key)
}

/// Has the server judge a statement on this connection, which is given back unless it is broken.
pub(in crate::relay) async fn inspect(loan: Loan, sink: &SqlSink) -> Result<(), Failure> {
    let connection = Fragile::new(loan);
    let inspected = sink.inspect(&connection).await;
    if inspected.is_ok() {
        connection.give_back();
    }
    inspected
}

async fn kafka_sink(
    engine: &Arc<Engine>,
    config: &Config,
    kafka: &kafka::Config,
    passed: Passed,
) -> Result<Sink, Unready> {
    let Some(cluster) = &engine.cluster else {
        return Err(Unready::wrong("kafka_missing", "no [kafka] section".to_owned(), "Add [kafka] bootstrap_servers."));
    };
    let mut limit = UNKNOWN_LIMIT;
    let mut topic = None;
    if !kafka.templated() {
        let facts = engine.topics.describe(cluster, &kafka.topic, engine.call_deadline).await?;
        kafka_topic(kafka, &facts).map_err(|(code, message, hint)| Unready::wrong(code, message, hint))?;
        match facts.max_message_bytes {
            Some(bytes) => limit = bytes,
            None => tracing::warn!(
                cursor = config.name,
                topic = kafka.topic,
                limit,
                "the topic's max.message.bytes cannot be read: records above this size are refused"
            ),
        }
        topic = Some(facts);
    }
    let sink = KafkaSink::new(Arc::clone(cluster), &config.relay, kafka, topic.as_ref(), limit, passed)
        .map_err(|invalid| Unready::invalid(&[invalid]))?;
    let sink = match &config.source {
        source::Config::Stream(stream) => {
            let (schema, table) = (&stream.table.schema, &stream.table.name);
            sink.of_table(Origin { database: &engine.database, schema, table })
        }
        source::Config::Pending(_) | source::Config::Requests(_) | source::Config::Schedule(_) => sink,
    };
    if !kafka.templated() {
        sink.warm(&kafka.topic, engine.call_deadline).await?;
        sink.have_schema_of(&kafka.topic).await?;
    }
    Ok(Sink::Kafka(sink))
}

/// The topic of a relay's dead letters, if it has one.
pub(in crate::relay) async fn letters(engine: &Engine, config: &Config) -> Result<Option<Arc<LetterTopic>>, Unready> {
    let (Some(topic), Some(cluster)) = (&config.dead_letter_topic, &engine.cluster) else { return Ok(None) };
    let facts = engine.topics.describe(cluster, topic, engine.call_deadline).await?;
    if !facts.exists {
        let (code, message, hint) = missing(topic, "dead_letter_topic");
        return Err(Unready::wrong(code, message, hint));
    }
    let limit = facts.max_message_bytes.unwrap_or(UNKNOWN_LIMIT);
    Ok(Some(Arc::new(LetterTopic::new(cluster, topic, limit))))
}

/// Has the next check read the limits of the relay's topics from the cluster.
pub(in crate::relay) fn forget_topics(engine: &Engine, config: &Config) {
    if let sink::Config::Kafka(kafka) = &config.sink {
        engine.topics.forget(&kafka.topic);
    }
    if let Some(topic) = &config.dead_letter_topic {
        engine.topics.forget(topic);
    }
}

/// What is said of a topic that does not exist; `key` is the setting that names it.
pub(in crate::relay) fn missing(topic: &str, key: &str) -> (&'static str, String, String) {
    (
        "topic_missing",
        format!("topic {topic} does not exist"),
        format!("Create it, or correct `{key}`: topics are never created automatically."),
    )
}

/// Whether a topic can carry the relay's order: code, message and fix otherwise.
///
/// # Errors
/// What is wrong.
pub(in crate::relay) fn kafka_topic(
    config: &kafka::Config,
    facts: &kafka::TopicFacts,
) -> Result<(), (&'static str, String, String)> {
    if !facts.exists {
        return Err(missing(&config.topic, "topic"));
    }
    if config.key.is_none() && facts.partitions > 1 && !config.unordered {
        return Err((
            "key_missing",
            format!(
                "topic {} has {} partitions and the relay has no key: order would be lost",
                config.topic, facts.partitions
            ),
            "Set `key` to a column, use a topic of one partition, or set `unordered = true`.".to_owned(),
        ));
    }
    Ok(())
}
