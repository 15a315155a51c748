//! The recorder behind the metrics, and its text form.

use std::time::Duration;

use metrics::gauge;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::process;
use super::table::{describe_all, name};

/// From a phase of half a millisecond to a lag of an hour. Every histogram gets them: one without buckets would be
/// exported as a summary, and summaries of several replicas cannot be put together.
const BUCKETS: [f64; 20] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0, 3600.0,
];

/// Measured values are folded into their buckets this often, so that they do not pile up where nobody scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

/// The content type of [`Exporter::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The process's metrics.
#[derive(Clone)]
pub struct Exporter {
    handle: PrometheusHandle,
}

impl Exporter {
    /// Installs the recorder of this process. To be called once, before anything is measured.
    ///
    /// # Errors
    /// When a recorder is installed already.
    pub fn install() -> Result<Self, BuildError> {
        let handle = builder()?.install_recorder()?;
        announce();
        Ok(Self { handle })
    }

    /// All metrics in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.handle.render();
        process::render(&mut text);
        text
    }

    /// Keeps memory bounded, for ever: to be spawned.
    pub async fn upkeep(self) {
        let mut tick = tokio::time::interval(UPKEEP);
        loop {
            tick.tick().await;
            self.handle.run_upkeep();
        }
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
        let recorder = builder().expect("buckets are given").build_recorder();
        metrics::with_local_recorder(&recorder, || {
            announce();
            measure(&Self { handle: recorder.handle() });
        });
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exporter")
    }
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
}

fn announce() {
    describe_all();
    gauge!(name::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
