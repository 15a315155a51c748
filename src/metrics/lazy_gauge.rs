//! A gauge that is not exported before it is known.

use std::sync::OnceLock;

use metrics::{Gauge, Label, gauge};

use crate::position::Timestamp;

/// A gauge that does not exist before it is first set.
pub(super) struct LazyGauge {
    name: &'static str,
    labels: Vec<Label>,
    gauge: OnceLock<Gauge>,
}

impl LazyGauge {
    pub(super) fn new(name: &'static str, labels: Vec<Label>) -> Self {
        Self { name, labels, gauge: OnceLock::new() }
    }

    pub(super) fn set(&self, value: f64) {
        self.gauge.get_or_init(|| gauge!(self.name, self.labels.clone())).set(value);
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
