//! One JSON line per message on standard output, for dry runs.

/// `[relay.sink.stdout]` of the configuration: nothing to configure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Config {}

use super::{Flow, Published};
use crate::batch::Batch;
use crate::message::Field;
/// (being built)
#[derive(Debug)]
pub struct StdoutSink {}
/// (being built)
#[derive(Debug)]
pub struct StdoutPublication<'a>(std::marker::PhantomData<&'a ()>);
impl StdoutSink {
    /// (being built)
    pub fn new(_relay: &str) -> Self {
        Self {}
    }
    pub(super) fn fields(&self) -> &[Field] {
        &[]
    }
    pub(super) fn begin(&self) -> StdoutPublication<'_> {
        StdoutPublication(std::marker::PhantomData)
    }
}
impl StdoutPublication<'_> {
    pub(super) async fn push(&mut self, _batch: &Batch) -> Flow {
        Flow::Stop
    }
    pub(super) fn finish(self) -> Published {
        Published { acknowledged: 0, stopped: None }
    }
}
