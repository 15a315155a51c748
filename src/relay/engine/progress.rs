//! How far a relay of due work has come in this process, which a `run --once` waits for.

/// How far a relay of due work has come in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// At the last look nothing was due that could be claimed, and nothing was on its way.
    pub done: bool,
    /// How many rows the receiver has accepted.
    pub sent: usize,
    /// How many rows could not be sent, or not be marked.
    pub failed: usize,
}
