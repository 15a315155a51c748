//! Reads a topic as it is, without a group: nothing is committed, and no right but to read the topic is needed.
//!
//! Promise: every record that is committed below the ends that were looked up first is seen once, or the reading fails and says
//! why. What another producer's open transaction hides is waited for, not taken for missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::admin::{AdminOptions, ResourceSpecifier};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};

mod read;

use super::Problem;
use crate::position::Timestamp;
use crate::sink::kafka::{Cluster, Login, explained};
pub use read::read;

/// How long a broker may take for one answer, and may be silent while records are to come.
pub const ANSWER: Duration = Duration::from_secs(30);
/// How often the reading looks whether it shall end.
const LOOK: Duration = Duration::from_millis(200);
/// A consumer needs a name; no group is joined, and nothing is committed.
const GROUP: &str = "outbox-relay-verify";

/// Which topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topics {
    /// The one of this name.
    One(String),
    /// All that a template can give: it begins with the first text, ends with the last, and has the others in between.
    Like(Vec<String>),
}

impl Topics {
    /// Those of a configured topic, which may be a template.
    #[must_use]
    pub fn of(topic: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut rest = topic;
        while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
            let close = if rest[at..].starts_with("{{") { "}}" } else { "%}" };
            parts.last_mut().expect("never empty").push_str(&rest[..at]);
            parts.push(String::new());
            rest = rest[at..].find(close).map_or("", |end| &rest[at + end + 2..]);
        }
        parts.last_mut().expect("never empty").push_str(rest);
        if parts.len() == 1 { Self::One(parts.remove(0)) } else { Self::Like(parts) }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::One(own) => own == name,
            Self::Like(parts) => {
                let (first, last) = (&parts[0], &parts[parts.len() - 1]);
                let inner = name.strip_prefix(first.as_str()).and_then(|name| name.strip_suffix(last.as_str()));
                let Some(mut inner) = inner.filter(|_| !name.starts_with("__")) else { return false };
                parts[1..parts.len() - 1].iter().all(|part| match inner.find(part.as_str()) {
                    Some(at) => {
                        inner = &inner[at + part.len()..];
                        true
                    }
                    None => false,
                })
            }
        }
    }
}

impl std::fmt::Display for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(name) => f.write_str(name),
            Self::Like(parts) => f.write_str(&parts.join("*")),
        }
    }
}

/// A partition, and what is read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its number.
    pub partition: i32,
    /// Its first offset: what was below is deleted.
    pub low: i64,
    /// Where reading begins.
    pub from: i64,
    /// Where it ends: the offset after the last record.
    pub end: i64,
}

impl Span {
    /// How many offsets are read.
    #[must_use]
    pub fn offsets(&self) -> u64 {
        u64::try_from(self.end - self.from).unwrap_or(0)
    }

    /// Whether records of the range may be deleted: its first one is among those that are read.
    #[must_use]
    pub fn may_be_cut(&self) -> bool {
        self.low > 0 && self.from <= self.low
    }
}

/// What a reading reports while it goes on, and how it is ended.
#[derive(Debug, Default)]
pub struct Watch {
    /// Rows and records so far.
    pub seen: AtomicU64,
    /// How many there are about.
    pub total: AtomicU64,
    stop: AtomicBool,
}

/// Ends the reading on another thread when the one who waits for it has gone.
struct Ends(Arc<Watch>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

fn consumer(cluster: &Cluster, isolation: &str) -> Result<BaseConsumer<Login>, Problem> {
    let mut settings = cluster.client_config();
    for (key, value) in [
        ("group.id", GROUP),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("enable.partition.eof", "true"),
        ("isolation.level", isolation),
        // Records that are deleted while they are read are not to be passed in silence.
        ("auto.offset.reset", "error"),
        // Records wait in memory, several times as large as they are.
        ("queued.max.messages.kbytes", "4096"),
        ("queued.min.messages", "20000"),
        ("fetch.max.bytes", "4194304"),
        ("fetch.queue.backoff.ms", "2"),
        ("fetch.wait.max.ms", "100"),
    ] {
        settings.set(key, value);
    }
    settings.set_log_level(RDKafkaLogLevel::Critical);
    let login = cluster.login();
    let consumer: BaseConsumer<Login> =
        settings.create_with_context(login.clone()).map_err(|error| problem(&error, None))?;
    // It has no records to give yet, but may say why it gets none.
    let mut said = None;
    login.log_in(|time| said = said.take().or_else(|| consumer.poll(time)?.err().filter(says_more)));
    match said {
        Some(error) => Err(problem(&error, None)),
        None => Ok(consumer),
    }
}

fn problem(error: &KafkaError, topic: Option<&str>) -> Problem {
    let failure = explained(error, topic);
    let denied = error.rdkafka_error_code() == Some(Code::TopicAuthorizationFailed);
    let hint = match topic.filter(|_| denied) {
        Some(topic) => format!(
            "Let this user read it: kafka-acls --add --allow-principal User:NAME --operation Read --operation Describe --topic {topic}"
        ),
        None => failure.hint,
    };
    Problem { message: format!("cannot read Kafka: {}", failure.message), hint }
}

/// Waits until a client of the cluster can log in.
async fn ready(cluster: &Cluster) -> Result<(), Problem> {
    match cluster.ready().await {
        Ok(_) => Ok(()),
        Err(failure) => Err(Problem { message: format!("cannot read Kafka: {}", failure.message), hint: failure.hint }),
    }
}

/// Runs a question to the cluster on a thread of its own.
async fn asked<T: Send + 'static>(ask: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    let panicked = |_| Problem::new("reading the topic ended by a panic", "Please report it.");
    tokio::task::spawn_blocking(ask).await.map_err(panicked)?
}

/// The partitions of the topics, from the first record that is stamped at or after `since` to what is there now.
///
/// # Errors
/// When the cluster or a topic cannot be read.
pub async fn survey(cluster: &Arc<Cluster>, topics: &Topics, since: Timestamp) -> Result<Vec<Span>, Problem> {
    ready(cluster).await?;
    let (cluster, topics) = (Arc::clone(cluster), topics.clone());
    asked(move || surveyed(&cluster, &topics, since)).await
}

fn surveyed(cluster: &Cluster, topics: &Topics, since: Timestamp) -> Result<Vec<Span>, Problem> {
    // Not only what is committed: the end includes what an open transaction hides.
    let consumer = consumer(cluster, "read_uncommitted")?;
    let one = match topics {
        Topics::One(name) => Some(name.as_str()),
        Topics::Like(_) => None,
    };
    let failed = |error: KafkaError| {
        // Why it timed out waits to be fetched.
        let reason =
            std::iter::from_fn(|| consumer.poll(Duration::ZERO)).find_map(|event| event.err().filter(says_more));
        let found = problem(reason.as_ref().unwrap_or(&error), one);
        Problem { message: format!("{} (bootstrap_servers {})", found.message, cluster.bootstrap_servers()), ..found }
    };
    let metadata = consumer.fetch_metadata(one, ANSWER / 3).map_err(failed)?;
    let mut spans = Vec::new();
    for topic in metadata.topics().iter().filter(|topic| topics.has(topic.name())) {
        match topic.error().map(Code::from) {
            None => {}
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => continue,
            Some(code) => return Err(problem(&KafkaError::MetadataFetch(code), Some(topic.name()))),
        }
        let name: Arc<str> = topic.name().into();
        for partition in topic.partitions() {
            let (low, end) = consumer
                .fetch_watermarks(&name, partition.id(), ANSWER)
                .map_err(|error| problem(&error, Some(&name)))?;
            spans.push(Span { topic: Arc::clone(&name), partition: partition.id(), low, from: low, end });
        }
    }
    spans.sort_by(|one, other| (&one.topic, one.partition).cmp(&(&other.topic, other.partition)));
    if spans.is_empty() && one.is_some() {
        return Err(Problem::new(
            format!("topic {topics} does not exist"),
            "Correct the topic's name, or create it: topics are never created automatically.",
        ));
    }
    begin_at(&consumer, &mut spans, since)?;
    Ok(spans)
}

/// Whether an event of the client tells why it gets no answer.
fn says_more(error: &KafkaError) -> bool {
    !matches!(error, KafkaError::PartitionEOF(_)) && error.rdkafka_error_code() != Some(Code::GroupAuthorizationFailed)
}

fn begin_at(consumer: &BaseConsumer<Login>, spans: &mut [Span], since: Timestamp) -> Result<(), Problem> {
    let millis = since.unix_micros().div_euclid(1_000).max(0);
    if spans.is_empty() || millis == 0 {
        return Ok(());
    }
    let mut times = TopicPartitionList::new();
    for span in spans.iter() {
        let added = times.add_partition_offset(&span.topic, span.partition, Offset::Offset(millis));
        added.map_err(|error| problem(&error, Some(&span.topic)))?;
    }
    let found = consumer.offsets_for_times(times, ANSWER).map_err(|error| problem(&error, Some(&spans[0].topic)))?;
    for span in spans {
        let Some(element) = found.find_partition(&span.topic, span.partition) else { continue };
        element.error().map_err(|error| problem(&error, Some(&span.topic)))?;
        span.from = match element.offset() {
            Offset::Offset(offset) => offset.clamp(span.low, span.end),
            _ => span.end,
        };
    }
    Ok(())
}

/// Whether the topic is compacted, as far as this user may know.
pub async fn compacted(cluster: &Arc<Cluster>, topic: &str) -> Option<bool> {
    cluster.ready().await.ok()?;
    let admin = cluster.admin().await.ok()?;
    let options = AdminOptions::new().request_timeout(Some(ANSWER / 3));
    let described = admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &options).await.ok()?;
    let entry = described.into_iter().next()?.ok()?;
    Some(entry.get("cleanup.policy")?.value.as_deref()?.contains("compact"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: verify.topics
    #[test]
    fn templates_give_the_topics_that_they_can_render() {
        assert_eq!(Topics::of("bookings"), Topics::One("bookings".to_owned()));
        let like = Topics::of("bookings.{{ region }}");
        assert!(like.has("bookings.eu") && !like.has("orders.eu") && !like.has("booking"));
        let like = Topics::of("a-{{ x }}-b-{% if y %}c{% endif %}-d");
        assert!(like.has("a-1-b-c-d") && like.has("a-1-b--c-d") && !like.has("a-1-c-d"));
        assert!(!Topics::of("{{ topic }}").has("__consumer_offsets") && Topics::of("{{ topic }}").has("x"));
        assert_eq!(Topics::of("bookings.{{ region }}").to_string(), "bookings.*");
    }
}
