//! In which partitions a broker has confirmed a record of a producer.
//!
//! A broker that knows nothing of a producer's id takes any sequence number for its first (Apache Kafka up to 4.3:
//! KAFKA-14359, KAFKA-15591). So when it refuses the first request for a partition, because it does not lead it at that
//! moment, and accepts the second, which is on its way already, the second stays before the first, in spite of idempotence.
//! librdkafka sends a second one behind a first of fewer than five messages. Therefore the first record for a partition goes
//! alone, and the next one waits for its confirmation: from then on the broker refuses what would leave a gap.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A broker forgets a producer that has sent nothing to a partition for a day (`producer.id.expiration.ms`, whose default is
/// 86,400,000). Long before, its next record counts as the first.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// So long a topic's number of partitions is believed.
const COUNTED: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    topics: HashMap<String, Topic>,
    /// Topic and place of the first records that are on their way.
    on_their_way: Vec<(String, usize)>,
}

#[derive(Debug, Default)]
struct Topic {
    /// By the number of the partition plus one; at 0 the records whose partition is not known.
    places: Vec<PartitionPlace>,
    /// How many partitions it has, and when that was asked.
    partitions: Option<(i32, Instant)>,
}

#[derive(Clone, Copy, Debug, Default)]
enum PartitionPlace {
    #[default]
    Unknown,
    /// The first record is on its way.
    First,
    /// A record was confirmed then.
    Confirmed(Instant),
}

impl Confirmed {
    /// Whether a record for this partition may be sent now; none: its partition is not known. When not, one before it is to
    /// be confirmed first.
    pub(super) fn admits(&mut self, topic: &str, partition: Option<i32>, now: Instant) -> bool {
        let number = partition.and_then(|partition| usize::try_from(partition).ok()).map_or(0, |number| number + 1);
        let places = &mut self.topic(topic).places;
        if places.len() <= number {
            places.resize(number + 1, PartitionPlace::Unknown);
        }
        // One whose partition is not known may be on its way to any.
        let in_its_way = match number {
            0 => places.iter().any(|place| matches!(place, PartitionPlace::First)),
            _ => matches!(places[0], PartitionPlace::First),
        };
        match places[number] {
            _ if in_its_way => return false,
            PartitionPlace::First => return false,
            PartitionPlace::Confirmed(at) if now.saturating_duration_since(at) < REMEMBERED => return true,
            PartitionPlace::Confirmed(_) | PartitionPlace::Unknown => places[number] = PartitionPlace::First,
        }
        self.on_their_way.push((topic.to_owned(), number));
        true
    }

    /// All records that were sent are confirmed.
    pub(super) fn confirm(&mut self, now: Instant) {
        for (topic, number) in std::mem::take(&mut self.on_their_way) {
            // Where the partition is not known, the next record may go to another one.
            let place = if number == 0 { PartitionPlace::Unknown } else { PartitionPlace::Confirmed(now) };
            self.topic(&topic).places[number] = place;
        }
    }

    /// The record that was admitted last was not sent, and none will be before all are reported on: nothing is known of the others.
    pub(super) fn give_up(&mut self) {
        for (topic, number) in std::mem::take(&mut self.on_their_way) {
            self.topic(&topic).places[number] = PartitionPlace::Unknown;
        }
    }

    /// How many partitions the topic has, if that was asked not long ago.
    pub(super) fn partitions(&self, topic: &str, now: Instant) -> Option<i32> {
        let (partitions, at) = self.topics.get(topic)?.partitions?;
        (now.saturating_duration_since(at) < COUNTED).then_some(partitions)
    }

    /// The topic has so many partitions now.
    pub(super) fn counted(&mut self, topic: &str, partitions: i32, now: Instant) {
        self.topic(topic).partitions = Some((partitions, now));
    }

    fn topic(&mut self, topic: &str) -> &mut Topic {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.to_owned(), Topic::default());
        }
        self.topics.get_mut(topic).expect("it was inserted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_record_waits_until_first_is_confirmed() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        assert!(confirmed.admits("t", Some(0), now));
        assert!(!confirmed.admits("t", Some(0), now), "the first is on its way");
        assert!(
            confirmed.admits("t", Some(1), now) && confirmed.admits("u", Some(0), now),
            "others have firsts of their own"
        );
        confirmed.confirm(now);
        assert!((0..3).all(|_| confirmed.admits("t", Some(0), now)));
        assert!(confirmed.admits("t", Some(2), now) && !confirmed.admits("t", Some(2), now));
    }

    #[test]
    fn record_after_long_rest_is_first_again() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        assert!(confirmed.admits("t", Some(0), now));
        confirmed.confirm(now);
        let later = now + REMEMBERED;
        assert!(confirmed.admits("t", Some(0), later) && !confirmed.admits("t", Some(0), later));
    }

    #[test]
    fn records_of_unknown_partition_go_one_by_one() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        for _ in 0..3 {
            assert!(confirmed.admits("t", None, now) && !confirmed.admits("t", None, now));
            confirmed.confirm(now);
        }
    }

    #[test]
    fn record_waits_for_one_that_may_be_in_its_partition() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        assert!(confirmed.admits("t", None, now) && !confirmed.admits("t", Some(2), now));
        confirmed.confirm(now);
        assert!(confirmed.admits("t", Some(2), now) && !confirmed.admits("t", None, now));
        confirmed.confirm(now);
        assert!(confirmed.admits("t", Some(2), now) && confirmed.admits("t", None, now));
    }

    #[test]
    fn record_that_was_not_sent_confirms_nothing() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        assert!(confirmed.admits("t", Some(0), now));
        confirmed.give_up();
        assert!(confirmed.admits("t", Some(0), now) && !confirmed.admits("t", Some(0), now));
    }

    #[test]
    fn number_of_partitions_is_asked_again_after_a_while() {
        let (mut confirmed, now) = (Confirmed::default(), Instant::now());
        assert_eq!(confirmed.partitions("t", now), None);
        confirmed.counted("t", 3, now);
        assert_eq!((confirmed.partitions("t", now), confirmed.partitions("t", now + COUNTED)), (Some(3), None));
    }
}
