//! What the Kafka client says of itself every few seconds, all producers of the process together.
//!
//! Only what is shown is read of librdkafka's long document. A producer's figures are forgotten when it ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;

/// How often a producer tells, unless `[kafka.properties]` says otherwise; as often as lag is measured.
pub(super) const INTERVAL_MS: &str = "5000";

/// What the producers said last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Messages in their queues and on the wire.
    pub queued: u64,
    /// The slowest producer's 99th percentile of round trips, by broker; zero for one that nobody has asked lately.
    pub round_trips: BTreeMap<String, Duration>,
}

/// The figures of all producers.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    next: u64,
    said: HashMap<u64, Said>,
    brokers: BTreeSet<String>,
}

/// One producer's place among them.
#[derive(Debug, Default)]
pub(super) struct Reading {
    number: u64,
    all: Statistics,
}

#[derive(Deserialize)]
struct Document {
    msg_cnt: u64,
    brokers: HashMap<String, Broker>,
}

#[derive(Deserialize)]
struct Broker {
    nodeid: i32,
    rtt: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    p99: u64,
}

impl Statistics {
    /// A place for one more producer.
    pub(super) fn reading(&self) -> Reading {
        let mut shared = self.shared();
        shared.next += 1;
        Reading { number: shared.next, all: self.clone() }
    }

    /// All figures together.
    pub(super) fn said(&self) -> Said {
        let shared = self.shared();
        let silent = shared.brokers.iter().map(|broker| (broker.clone(), Duration::ZERO));
        let mut together = Said { queued: 0, round_trips: silent.collect() };
        for said in shared.said.values() {
            together.queued += said.queued;
            for (broker, round_trip) in &said.round_trips {
                let slowest = together.round_trips.entry(broker.clone()).or_default();
                *slowest = (*slowest).max(*round_trip);
            }
        }
        together
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// Takes what the producer says, as JSON.
    pub(super) fn take(&self, json: &[u8]) {
        let document: Document = match serde_json::from_slice(json) {
            Ok(document) => document,
            Err(error) => {
                tracing::debug!(%error, "the Kafka client's statistics cannot be read");
                return;
            }
        };
        // A broker has no number of its own until the cluster has been asked who is who.
        let known = document.brokers.into_values().filter(|broker| broker.nodeid >= 0);
        let round_trips: BTreeMap<_, _> = known
            .filter_map(|broker| Some((broker.nodeid.to_string(), Duration::from_micros(broker.rtt?.p99))))
            .collect();
        let mut shared = self.all.shared();
        shared.brokers.extend(round_trips.keys().cloned());
        shared.said.insert(self.number, Said { queued: document.msg_cnt, round_trips });
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.all.shared().said.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(queued: u64, micros: u64) -> String {
        format!(
            r#"{{"msg_cnt":{queued},"age":1,"brokers":{{"a:9092/1":{{"nodeid":1,"rtt":{{"avg":1,"p99":{micros}}}}},
                "a:9092/bootstrap":{{"nodeid":-1,"rtt":{{"p99":9000000}}}},"b:9092/2":{{"nodeid":2}}}}}}"#
        )
    }

    #[test]
    fn queues_are_summed_the_slowest_round_trip_counts_and_an_ended_producer_is_forgotten() {
        let all = Statistics::default();
        let (one, other) = (all.reading(), all.reading());
        assert_eq!(all.said(), Said::default());
        one.take(document(3, 1500).as_bytes());
        other.take(document(4, 700).as_bytes());
        other.take(b"no JSON");
        let said = |queued, micros| Said {
            queued,
            round_trips: BTreeMap::from([("1".to_owned(), Duration::from_micros(micros))]),
        };
        assert_eq!(all.said(), said(7, 1500));
        drop(one);
        assert_eq!(all.said(), said(4, 700));
        drop(other);
        assert_eq!(all.said(), said(0, 0), "the broker is known, and nobody asks it");
    }
}
