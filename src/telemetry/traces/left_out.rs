//! What stands in for the exporter in a program that was built without it. The configuration refuses `[telemetry]` there.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Config, Span};

pub(super) struct Exporter;

pub(super) struct Refused {
    pub(super) why: String,
}

impl Exporter {
    pub(super) fn new(_: Config, _: &str) -> Self {
        Self
    }

    pub(super) async fn export(&self, _: &[Span]) -> Result<(), Refused> {
        Err(Refused { why: "this program was built without it".to_owned() })
    }
}

pub(super) async fn run(_: Exporter, _: mpsc::Receiver<Span>, _: CancellationToken) {}
