//! Metrics that are not exported before there is something to export: a series costs memory in every replica, and in
//! Prometheus for as long as it keeps data.

use std::sync::OnceLock;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use crate::position::Timestamp;

/// A metric that does not exist before it is first used.
pub(super) struct Lazy<T> {
    name: &'static str,
    labels: Vec<Label>,
    metric: OnceLock<T>,
}

/// A gauge that does not exist before it is first set.
pub(super) type LazyGauge = Lazy<Gauge>;

impl<T> Lazy<T> {
    pub(super) fn new(name: &'static str, labels: Vec<Label>) -> Self {
        Self { name, labels, metric: OnceLock::new() }
    }
}

impl Lazy<Gauge> {
    pub(super) fn set(&self, value: f64) {
        self.metric.get_or_init(|| gauge!(self.name, self.labels.clone())).set(value);
    }

    pub(super) fn set_flag(&self, value: bool) {
        self.set(f64::from(u8::from(value)));
    }

    pub(super) fn set_instant(&self, at: Timestamp) {
        if at.is_finite() {
            self.set(at.since(Timestamp::from_unix_micros(0)).as_secs_f64());
        }
    }
}

impl Lazy<Counter> {
    /// Adds to it. With 0 it exists from then on, so that its first step is seen as one.
    pub(super) fn increment(&self, by: u64) {
        self.metric.get_or_init(|| counter!(self.name, self.labels.clone())).increment(by);
    }
}

impl Lazy<Histogram> {
    /// Measures one value so many times. With 0 it exists from then on.
    pub(super) fn record_many(&self, value: f64, times: usize) {
        self.metric.get_or_init(|| histogram!(self.name, self.labels.clone())).record_many(value, times);
    }
}
