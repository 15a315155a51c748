//! From a relay's configuration to its sink.

use std::sync::Arc;

use super::Config;
use super::engine::Engine;
use super::prepare::Unready;
use crate::message::Field;
use crate::sink::http::HttpSink;
use crate::sink::kafka::{self, KafkaSink, describe_topic};
use crate::sink::stdout::StdoutSink;
use crate::sink::{self, InvalidSetting, Sink};
use crate::source::shape::Shape;

/// A record's size limit where the topic's own cannot be read.
const UNKNOWN_LIMIT: usize = 1_000_000;

/// Makes a relay's sink, and asks its server what must be known of it.
pub(super) async fn make(engine: &Arc<Engine>, config: &Config, shape: &Shape) -> Result<Sink, Unready> {
    match &config.sink {
        sink::Config::Kafka(kafka) => kafka_sink(engine, config, kafka, shape).await,
        sink::Config::Http(_) | sink::Config::Sms(_) | sink::Config::Stdout(_) => {
            local_sink(config).map_err(|invalid| Unready::invalid(&invalid))
        }
    }
}

/// A sink that is made without asking any server.
fn local_sink(config: &Config) -> Result<Sink, Vec<InvalidSetting>> {
    match &config.sink {
        sink::Config::Http(http) => HttpSink::new(http, &config.name).map(Sink::Http),
        sink::Config::Sms(sms) => sink::sms::sink(sms, &config.name).map(Sink::Http),
        sink::Config::Stdout(stdout) => Ok(Sink::Stdout(StdoutSink::new(stdout, &config.name))),
        sink::Config::Kafka(_) => Err(Vec::new()),
    }
}

/// What a relay's sink will read of each row, without asking any server.
///
/// # Errors
/// Settings that cannot work.
pub(super) fn fields(config: &Config, shape: &Shape) -> Result<Vec<Field>, Vec<InvalidSetting>> {
    match &config.sink {
        sink::Config::Kafka(kafka) => kafka.fields(shape.traceparent).map_err(|invalid| vec![invalid]),
        sink::Config::Http(_) | sink::Config::Sms(_) | sink::Config::Stdout(_) => {
            local_sink(config).map(|sink| sink.fields().to_vec())
        }
    }
}

async fn kafka_sink(
    engine: &Arc<Engine>,
    config: &Config,
    kafka: &kafka::Config,
    shape: &Shape,
) -> Result<Sink, Unready> {
    let Some(cluster) = &engine.cluster else {
        return Err(Unready::wrong("kafka_missing", "no [kafka] section".to_owned(), "Add [kafka] bootstrap_servers."));
    };
    let mut limit = UNKNOWN_LIMIT;
    let mut topic = None;
    if !kafka.templated() {
        let facts = describe_topic(cluster, &kafka.topic, engine.call_deadline).await?;
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
    let sink = KafkaSink::new(Arc::clone(cluster), &config.name, kafka, topic.as_ref(), limit, shape.traceparent)
        .map_err(|invalid| Unready::invalid(&[invalid]))?;
    if !kafka.templated() {
        sink.warm(&kafka.topic, engine.call_deadline).await?;
    }
    Ok(Sink::Kafka(sink))
}

/// Whether a topic can carry the relay's order: code, message and mend otherwise.
///
/// # Errors
/// What is wrong.
pub(super) fn kafka_topic(
    config: &kafka::Config,
    facts: &kafka::TopicFacts,
) -> Result<(), (&'static str, String, String)> {
    if !facts.exists {
        return Err((
            "topic_missing",
            format!("topic {} does not exist", config.topic),
            "Create it, or correct `topic`: topics are never created automatically.".to_owned(),
        ));
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
