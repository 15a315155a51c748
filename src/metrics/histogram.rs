//! Histograms that count a value in its bucket when it is measured.
//!
//! The exporter's own keep every value until somebody scrapes or has them folded, and a value of many rows as many times:
//! sixteen bytes and a reading of the clock for each row that is published. Here a distribution has the same few numbers
//! whatever it has seen.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::atomics::AtomicU64;
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use metrics_exporter_prometheus::formatting::{write_help_line, write_metric_line, write_type_line};
use metrics_exporter_prometheus::{LabelSet, PrometheusRecorder};

use super::table::name;

/// Of what each cursor has: every bound is one more series for each of perhaps a thousand cursors and each replica. Fine where
/// a healthy relay is, coarse where only the order of magnitude counts.
const OF_CURSORS: &[f64] = &[0.005, 0.01, 0.025, 0.1, 1.0, 30.0];
/// Of what a process or a table has: from a phase of half a millisecond to five minutes.
const OF_PROCESS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// The upper bounds of the buckets of a histogram with this key.
fn bounds(key: &Key) -> &'static [f64] {
    if key.labels().any(|label| label.key() == "cursor") { OF_CURSORS } else { OF_PROCESS }
}

/// A recorder that has histograms of its own, and leaves counters and gauges to another.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) counters_and_gauges: PrometheusRecorder,
    pub(super) histograms: Histograms,
    /// Whether to measure the phases of turns.
    pub(super) phases: bool,
}

/// All histograms of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Histograms(Arc<Mutex<BTreeMap<String, Family>>>);

/// The histograms of one name.
#[derive(Clone, Debug, Default)]
struct Family {
    help: SharedString,
    distributions: BTreeMap<Key, Arc<Distribution>>,
}

/// How many values there were up to each bound, and what they come to.
#[derive(Debug)]
struct Distribution {
    bounds: &'static [f64],
    /// Of each bucket alone; the last is beyond all bounds.
    counts: Vec<AtomicU64>,
    /// An `f64`, as its bits.
    sum: AtomicU64,
}

impl Histograms {
    /// Appends them in Prometheus' text format.
    pub(super) fn render(&self, text: &mut String) {
        // Whoever measures something new meanwhile must not wait for the text.
        let families = self.families().clone();
        for (name, family) in families.iter().filter(|(_, family)| !family.distributions.is_empty()) {
            write_help_line(text, name, None, None, &family.help);
            write_type_line(text, name, None, None, "histogram");
            for (key, distribution) in &family.distributions {
                let labels = LabelSet::from_key_and_global(key, &Default::default());
                distribution.render(text, name, &labels);
            }
            text.push('\n');
        }
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Distribution {
    fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    fn render(&self, text: &mut String, name: &str, labels: &LabelSet) {
        let mut count = 0;
        let bounds = self.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, of_bucket) in bounds.zip(&self.counts) {
            count += of_bucket.load(Relaxed);
            write_metric_line(text, name, Some("bucket"), labels, Some(("le", bound.as_str())), count, None);
        }
        let sum = f64::from_bits(self.sum.load(Relaxed));
        write_metric_line::<&str, _>(text, name, Some("sum"), labels, None, sum, None);
        write_metric_line::<&str, _>(text, name, Some("count"), labels, None, count, None);
    }
}

impl HistogramFn for Distribution {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        // A bound belongs to the bucket below it.
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        CounterFn::increment(&self.counts[bucket], count as u64);
        GaugeFn::increment(&self.sum, value * count as f64);
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.counters_and_gauges.describe_counter(name, unit, help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.counters_and_gauges.describe_gauge(name, unit, help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.histograms.families().entry(name.as_str().to_owned()).or_default().help = help;
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.counters_and_gauges.register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.counters_and_gauges.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() == name::TURN_DURATION && !self.phases {
            return Histogram::noop();
        }
        let mut families = self.histograms.families();
        let family = families.entry(key.name().to_owned()).or_default();
        let distribution = family.distributions.entry(key.clone());
        let distribution = distribution.or_insert_with(|| Arc::new(Distribution::new(bounds(key))));
        Histogram::from_arc(Arc::clone(distribution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_all_buckets_from_its_own_as_often_as_it_was_measured() {
        let histograms = Histograms::default();
        let distribution = Arc::new(Distribution::new(OF_PROCESS));
        let family = Family {
            distributions: BTreeMap::from([(Key::from_name("d"), Arc::clone(&distribution))]),
            ..Family::default()
        };
        histograms.families().insert("d".to_owned(), family);
        distribution.record(0.0005);
        distribution.record_many(0.02, 3);
        distribution.record(4_000.0);
        let mut text = String::new();
        histograms.render(&mut text);
        for line in [
            "d_bucket{le=\"0.0005\"} 1",
            "d_bucket{le=\"0.01\"} 1",
            "d_bucket{le=\"0.025\"} 4",
            "d_bucket{le=\"300\"} 4",
            "d_bucket{le=\"+Inf\"} 5",
            "d_sum 4000.0605",
            "d_count 5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        }
    }
}
