//! Whether a relay's topic can take what it will be sent.

use std::sync::Arc;
use std::time::Duration;

use super::Readable;
use crate::database::{Error, Session};
use crate::relay::setup::sinks;
use crate::sink::kafka::{self, Cluster, TopicFacts, describe_topic};
use crate::sink::{Class, Failure};
use crate::source::finding::{Finding, Level};

/// Asked about where rows name the topics, to see whether brokers answer.
const NO_TOPIC: &str = "outbox-relay.check";
const TOPIC_DENIED: &str = "kafka_topic_authorization_failed";
const PATIENCE: Duration = Duration::from_secs(5);
/// Codes of a broker that does not answer.
const AWAY: [&str; 4] =
    ["kafka_broker_transport_failure", "kafka_all_brokers_down", "kafka_operation_timed_out", "kafka_resolve"];
/// Codes of a log-in that cannot be tried, by their findings.
const NO_LOG_IN: [&str; 3] = ["token_refused", "token_unavailable", "secret_unreadable"];
const UNREACHABLE: &str = "Check [kafka] bootstrap_servers, and that the brokers run, accept this security.protocol and can \
     be reached from here under the names that they tell (advertised.listeners).";

/// Asks Kafka, whatever is wrong with the table; sizes only where rows can be read.
pub(super) async fn topic(
    cluster: Option<&Arc<Cluster>>,
    config: &kafka::Config,
    rows: Option<(&Session, &Readable)>,
    away: &mut Option<Failure>,
) -> Vec<Finding> {
    let Some(cluster) = cluster else {
        return vec![Finding::new(Level::Error, "kafka_missing", "no [kafka] section").setting("Add [kafka].")];
    };
    if config.templated() {
        // That this topic is not there, or not for this user, is an answer.
        if let Err(failure) = described(cluster, NO_TOPIC, away).await
            && failure.code != TOPIC_DENIED
        {
            return vec![unanswered(failure)];
        }
        return vec![Finding::new(Level::Ok, "topic", "the topic depends on the row: it is checked when it is used")];
    }
    let facts = match described(cluster, &config.topic, away).await {
        Ok(facts) => facts,
        Err(failure) => return vec![unanswered(failure)],
    };
    if let Err((code, message, hint)) = sinks::kafka_topic(config, &facts) {
        return vec![Finding::new(Level::Error, code, message).setting(hint)];
    }
    let name = &config.topic;
    let partitions = if facts.partitions == 1 { "partition" } else { "partitions" };
    let found = Finding::new(Level::Ok, "topic", format!("topic {name} has {} {partitions}", facts.partitions));
    let size = match (facts.max_message_bytes, rows) {
        (Some(limit), Some((session, readable))) => {
            size(session, readable, name, limit).await.unwrap_or_else(|error| Finding::database(&error))
        }
        (Some(limit), None) => Finding::new(Level::Ok, "topic_limit", format!("topic {name} accepts {limit} bytes")),
        (None, _) => {
            let message = format!("max.message.bytes of topic {name} cannot be read");
            Finding::new(Level::Warn, "topic_limit_unknown", message)
                .setting("Grant DescribeConfigs on the topic; until then records above 1,000,000 bytes are refused.")
        }
    };
    vec![found, size]
}

/// Whether a finding says that this topic is not there.
pub(super) fn is_missing(finding: &Finding, topic: &str) -> bool {
    let (code, message, _) = sinks::missing(topic, "topic");
    finding.code == code && finding.message == message
}

/// Asks Kafka about the topic of a relay's dead letters.
pub(super) async fn letters(cluster: Option<&Arc<Cluster>>, topic: &str, away: &mut Option<Failure>) -> Finding {
    let Some(cluster) = cluster else {
        return Finding::new(Level::Error, "kafka_missing", "no [kafka] section").setting("Add [kafka].");
    };
    match described(cluster, topic, away).await {
        Ok(facts) if facts.exists => Finding::new(Level::Ok, "topic", format!("dead letter topic {topic} is there")),
        Ok(_) => {
            let (code, message, hint) = sinks::missing(topic, "dead_letter_topic");
            Finding::new(Level::Error, code, message).setting(hint)
        }
        Err(failure) => unanswered(failure),
    }
}

/// Asks a cluster that is away once: each further question would take its whole patience, and the answer is the same.
async fn described(cluster: &Arc<Cluster>, topic: &str, away: &mut Option<Failure>) -> Result<TopicFacts, Failure> {
    if let Some(failure) = away {
        return Err(failure.clone());
    }
    let described = describe_topic(cluster, topic, PATIENCE).await;
    *away = described.as_ref().err().filter(|failure| is_away(failure) || no_log_in(failure).is_some()).cloned();
    described
}

fn is_away(failure: &Failure) -> bool {
    AWAY.contains(&failure.code.as_str())
}

fn no_log_in(failure: &Failure) -> Option<&'static str> {
    NO_LOG_IN.into_iter().find(|code| *code == failure.code)
}

fn unanswered(failure: Failure) -> Finding {
    if let Some(code) = no_log_in(&failure) {
        return Finding::new(Level::Error, code, failure.message).setting(format!("{}.", failure.hint));
    }
    let refused = failure.class == Class::Fatal || failure.code == kafka::NO_CLIENT_CODE;
    let code = if refused { "kafka_refused" } else { "kafka_unreachable" };
    let hint = if is_away(&failure) { UNREACHABLE.to_owned() } else { failure.hint };
    Finding::new(Level::Error, code, failure.message).setting(hint)
}

/// Compares the largest of the newest 1,000 rows' values with what the topic accepts.
async fn size(session: &Session, readable: &Readable, topic: &str, limit: usize) -> Result<Finding, Error> {
    let row = session.query_one(&readable.shape.largest_sql(&readable.fields, limit), &[]).await?;
    let largest = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
    Ok(if largest >= limit {
        let message = format!("among the newest 1,000 rows one takes {largest} bytes; topic {topic} accepts {limit}");
        Finding::new(Level::Warn, "message_too_large", message).setting("Raise the topic's max.message.bytes.")
    } else {
        let message = format!("the largest of the newest 1,000 rows takes {largest} of {limit} bytes");
        Finding::new(Level::Ok, "message_size", message)
    })
}
