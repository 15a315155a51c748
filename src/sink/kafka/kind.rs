//! What a producer is made for, and the settings that follow from it.
//!
//! librdkafka (seen in 2.12) has one request of an idempotent producer on the wire for a partition, because it compares the
//! messages in flight with a limit of five requests. While messages wait behind it that have lingered as long as they should,
//! its thread asks for room again and again without a pause: half a core that PostgreSQL or the broker could use. A producer
//! for backlogs lets them linger for about as long as a request is under way, and its queue holds little more than the next
//! request: when the answer comes, that one is full, or old enough, and goes at once.
//!
//! Where records are spread over several partitions, each has a request of its own under way, and a queue of two and a half
//! requests for all of them fills none: each request would linger to the end. There the queue is as long as for single rows.

/// What librdkafka takes for the size of a record; a topic's limit may lie beyond both ends.
pub(super) const RECORD_BYTES: std::ops::RangeInclusive<usize> = 1_000..=1_000_000_000;
/// A topic with a larger limit does not make batches larger.
const BATCH_BYTES: usize = 1_000_000;
const KIB: usize = 1024;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerKind {
    /// The most bytes of a record.
    pub limit: usize,
    /// For backlogs, of which throughput counts and not how soon a message arrives; none for single rows.
    pub backlog: Option<Spread>,
}

/// Where the records of a backlog go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// To one partition.
    One,
    /// To several, or it is not known.
    Several,
}

/// The longest queue that is needed, in KiB.
const LONG_KIB: usize = 8 * KIB;
/// How long a backlog's records linger, in milliseconds.
pub(super) const LINGER_MS: &str = "15";

impl ProducerKind {
    /// A producer that sends at once what it is given.
    #[must_use]
    pub fn prompt(limit: usize) -> Self {
        Self { limit, backlog: None }
    }

    /// The name of the thread that takes a producer's reports.
    pub(super) fn thread(self) -> &'static str {
        if self.backlog.is_some() { "backlog" } else { "producer" }
    }

    pub(super) fn batch_bytes(self) -> usize {
        self.limit.min(BATCH_BYTES)
    }

    /// Milliseconds.
    pub(super) fn linger(self) -> &'static str {
        if self.backlog.is_some() { LINGER_MS } else { "0" }
    }

    /// How many may wait and be under way: small records take more memory than they have bytes.
    pub(super) fn queue_messages(self) -> &'static str {
        if self.backlog == Some(Spread::Several) { "20000" } else { "100000" }
    }

    /// How much may wait and be under way, in KiB, unless the operator has `configured` something else; always enough for the
    /// largest record and its neighbour: a record that no empty queue has room for would be offered indefinitely.
    pub(super) fn queue_kib(self, configured: Option<usize>) -> usize {
        let usual = match self.backlog {
            Some(Spread::One) => self.batch_bytes() * 5 / 2 / KIB,
            Some(Spread::Several) | None => LONG_KIB,
        };
        configured.unwrap_or(usual).max((2 * self.limit).div_ceil(KIB))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_room_for_the_largest_record_and_its_neighbour_whatever_is_configured() {
        for limit in [1_000, 1_048_588, 100 << 20] {
            let (one, several) = (Some(Spread::One), Some(Spread::Several));
            for (backlog, configured) in
                [(None, None), (one, None), (several, None), (one, Some(1)), (several, Some(1)), (None, Some(8 << 20))]
            {
                let kind = ProducerKind { limit, backlog };
                let queue = kind.queue_kib(configured);
                assert!(queue * KIB >= 2 * limit && queue >= configured.unwrap_or(0), "{kind:?}");
                assert!(kind.batch_bytes() <= limit, "{kind:?}");
            }
        }
    }
}
