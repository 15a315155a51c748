//! What is measured of the HTTP intake.

use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use super::table::name;

/// What became of a call of `POST /v1/requests`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeResult {
    /// It has made a request.
    Accepted,
    /// The request was there.
    Repeated,
    /// The client was told what is wrong with it.
    Refused,
    /// It was not carried out, or nobody knows.
    Failed,
}

impl IntakeResult {
    const ALL: [Self; 4] = [Self::Accepted, Self::Repeated, Self::Refused, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The metrics of the intake in this process.
#[derive(Clone)]
pub struct IntakeMetrics {
    requests: [Counter; 4],
    duration: Histogram,
}

impl IntakeMetrics {
    /// Counters start at 0 here.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it registers the metrics: nothing that should happen by default")]
    pub fn new() -> Self {
        let requests = IntakeResult::ALL.map(|result| counter!(name::INTAKE_REQUESTS, "result" => result.as_str()));
        for counter in &requests {
            counter.increment(0);
        }
        Self { requests, duration: histogram!(name::INTAKE_DURATION) }
    }

    /// A call was answered, after so long.
    pub fn answered(&self, result: IntakeResult, took: Duration) {
        self.requests[result as usize].increment(1);
        self.duration.record(took.as_secs_f64());
    }
}

impl std::fmt::Debug for IntakeMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IntakeMetrics")
    }
}
