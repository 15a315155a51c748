//! How often relays of every kind do what is no turn.

use std::time::Duration;

/// How often lag and backlog are measured.
pub(in crate::relay) const SAMPLE: Duration = Duration::from_secs(5);
/// How long a relay that did not pass its checks waits before they are made again.
pub(in crate::relay) const RECHECK: Duration = Duration::from_secs(5);
