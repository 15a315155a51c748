//! Reads the records of a topic's spans, once, without a group.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset, TopicPartitionList};

use super::{ANSWER, Ends, LOOK, Span, Watch, asked, consumer, problem, says_more};
use crate::sink::kafka::{Cluster, Login};
use crate::verify::Problem;

/// Shows every record of these spans to `see`, with the number of its span.
///
/// # Errors
/// When a record cannot be read.
pub async fn read<S: Send + 'static>(
    cluster: &Arc<Cluster>,
    spans: &[Span],
    watch: &Arc<Watch>,
    state: S,
    see: impl Fn(&mut S, usize, &BorrowedMessage<'_>) + Send + 'static,
) -> Result<S, Problem> {
    let (cluster, spans, ends) = (Arc::clone(cluster), spans.to_vec(), Ends(Arc::clone(watch)));
    let watch = Arc::clone(watch);
    watch.stop.store(false, Ordering::Relaxed);
    let state = asked(move || {
        let mut state = state;
        let mut by_topic: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, span) in spans.iter().enumerate().filter(|(_, span)| span.from < span.end) {
            by_topic.entry(&span.topic).or_default().push(number);
        }
        if by_topic.is_empty() {
            return Ok(state);
        }
        let consumer = consumer(&cluster, "read_committed")?;
        for numbers in by_topic.values() {
            // One topic at a time: the client names the partition that has ended, and not its topic.
            let reader = Reader { consumer: &consumer, spans: &spans, watch: &watch };
            reader.read(numbers, |number, message| see(&mut state, number, message))?;
        }
        Ok(state)
    });
    let state = state.await;
    drop(ends);
    state
}

struct Reader<'a> {
    consumer: &'a BaseConsumer<Login>,
    spans: &'a [Span],
    watch: &'a Watch,
}

impl Reader<'_> {
    fn read(&self, numbers: &[usize], mut see: impl FnMut(usize, &BorrowedMessage<'_>)) -> Result<(), Problem> {
        let mut left: HashMap<i32, usize> =
            numbers.iter().map(|number| (self.spans[*number].partition, *number)).collect();
        let topic = Arc::clone(&self.spans[numbers[0]].topic);
        let failed = |error: &KafkaError| problem(error, Some(&topic));
        let mut list = TopicPartitionList::new();
        for number in numbers {
            let span = &self.spans[*number];
            list.add_partition_offset(&topic, span.partition, Offset::Offset(span.from))
                .map_err(|error| failed(&error))?;
        }
        self.consumer.assign(&list).map_err(|error| failed(&error))?;
        let mut heard = Instant::now();
        let mut complaint = None;
        while !left.is_empty() {
            if self.watch.stop.load(Ordering::Relaxed) {
                return Err(Problem::new("the reading was ended", ""));
            }
            match self.consumer.poll(LOOK) {
                None => {}
                Some(Ok(message)) => {
                    heard = Instant::now();
                    self.watch.seen.fetch_add(1, Ordering::Relaxed);
                    let Some(number) = left.get(&message.partition()).copied() else { continue };
                    let end = self.spans[number].end;
                    if message.offset() < end {
                        see(number, &message);
                    }
                    if message.offset() + 1 >= end {
                        self.done(&mut left, message.partition(), &topic);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    let Some(number) = left.get(&partition) else { continue };
                    let stable = self.consumer.fetch_watermarks(&topic, partition, ANSWER);
                    if stable.map_err(|error| failed(&error))?.1 >= self.spans[*number].end {
                        self.done(&mut left, partition, &topic);
                    }
                }
                Some(Err(error)) => match error.rdkafka_error_code() {
                    Some(Code::AutoOffsetReset | Code::OffsetOutOfRange) => {
                        let what = format!("topic {topic}: records were deleted while they were read");
                        return Err(Problem::new(what, "Look again, over a shorter time: --since."));
                    }
                    Some(Code::TopicAuthorizationFailed | Code::UnknownTopicOrPartition) => return Err(failed(&error)),
                    _ => complaint = Some(error).filter(says_more).or(complaint),
                },
            }
            if heard.elapsed() > ANSWER {
                return Err(complaint.as_ref().map_or_else(|| silent(&topic, &left), failed));
            }
        }
        Ok(())
    }

    /// A partition is read; what comes after is left.
    fn done(&self, left: &mut HashMap<i32, usize>, partition: i32, topic: &str) {
        left.remove(&partition);
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        // It only saves what would be read for nothing.
        let _ = self.consumer.pause(&list);
    }
}

fn silent(topic: &str, left: &HashMap<i32, usize>) -> Problem {
    let mut partitions: Vec<String> = left.keys().map(ToString::to_string).collect();
    partitions.sort();
    Problem::new(
        format!("topic {topic}, partition {}: no further record came within {ANSWER:?}", partitions.join(", ")),
        "A transaction of another producer may be open there, or the broker be overloaded: look again when it has ended.",
    )
}
