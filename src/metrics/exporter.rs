//! The recorder behind the metrics, and its text form.

use metrics::{counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::histogram::{Histograms, Recorder};
use super::process;
use super::table::{describe_all, name};
use crate::telemetry;

/// The content type of [`Exporter::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How `turn_duration_seconds` is measured (`[metrics] phases`): by far the most series of all metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phases {
    /// For each table, over all its cursors.
    #[default]
    Table,
    /// Not at all.
    Off,
}

impl Phases {
    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Off => "off",
        }
    }
}

/// A recorder is installed in this process already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("something else measures in this process already")]
pub struct AlreadyInstalled;

/// The process's metrics.
#[derive(Clone)]
pub struct Exporter {
    counters_and_gauges: PrometheusHandle,
    histograms: Histograms,
}

impl Exporter {
    /// Installs the recorder of this process, with or without the phases of turns. To be called once, before anything is
    /// measured.
    ///
    /// # Errors
    /// When a recorder is installed already.
    pub fn install(phases: Phases) -> Result<Self, AlreadyInstalled> {
        let (recorder, exporter) = Self::new(phases);
        metrics::set_global_recorder(recorder).map_err(|_| AlreadyInstalled)?;
        announce();
        Ok(exporter)
    }

    fn new(phases: Phases) -> (Recorder, Self) {
        let (counters_and_gauges, histograms) = (PrometheusBuilder::new().build_recorder(), Histograms::default());
        let exporter = Self { counters_and_gauges: counters_and_gauges.handle(), histograms: histograms.clone() };
        (Recorder { counters_and_gauges, histograms, phases: phases == Phases::Table }, exporter)
    }

    /// All metrics in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        counted_elsewhere();
        let mut text = self.counters_and_gauges.render();
        self.histograms.render(&mut text);
        process::render(&mut text);
        text
    }

    /// An exporter of a recorder of its own, which nothing is measured with, for tests.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        let mut detached = None;
        Self::local(|exporter| detached = Some(exporter.clone()));
        detached.expect("the closure has run")
    }

    /// Runs `measure` with a recorder of its own, for tests of what is exported.
    #[cfg(test)]
    pub(crate) fn local(measure: impl FnOnce(&Self)) {
        Self::local_with(Phases::Table, measure);
    }

    /// The same, with these phases.
    #[cfg(test)]
    pub(crate) fn local_with(phases: Phases, measure: impl FnOnce(&Self)) {
        let (recorder, exporter) = Self::new(phases);
        metrics::with_local_recorder(&recorder, || {
            announce();
            measure(&exporter);
        });
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exporter")
    }
}

/// What logs and spans count, which know no metrics.
fn counted_elsewhere() {
    counter!(name::LOG_LINES_DROPPED).absolute(telemetry::dropped());
    counter!(name::SPANS_EXPORTED).absolute(telemetry::traces::exported());
    counter!(name::SPANS_DROPPED).absolute(telemetry::traces::dropped());
}

fn announce() {
    describe_all();
    counted_elsewhere();
    gauge!(name::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
