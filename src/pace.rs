//! When the next look at a table is due. Pure.

use std::time::Duration;

/// `[relay.poll]` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Pause after a turn that found rows, and the first one after an empty look.
    pub min: Duration,
    /// Pause that the doubling ends at while nothing happens.
    pub max: Duration,
    /// Pause of a replica that found the cursor held by another.
    pub standby: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { min: Duration::from_millis(1), max: Duration::from_millis(200), standby: Duration::from_millis(250) }
    }
}
