//! What is recorded of the rows that relays of streams pass (`[audit]`).

use std::time::Duration;

/// `[audit]` of the configuration: what is recorded of the rows that relays of streams pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// It is recorded, and compared with the table.
    pub enabled: bool,
    /// How long it is kept for `verify`; none: as long as it may be compared.
    pub keep: Option<Duration>,
}

impl Audit {
    /// The shortest time for which it can be kept: what is recorded may be compared, and rows that came late found, until then, and so
    /// long it stays in any case.
    pub const SHORTEST: Duration = crate::audit::MADE_UP_FOR;
}

impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, keep: None }
    }
}

/// Why it is not recorded which rows a relay passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unaudited {
    /// It reads no stream.
    NoStream,
    /// Late rows are found by their transaction, and nothing is kept.
    Swept,
    /// The configuration says so.
    Disabled,
    /// It is not known in the advance which rows were sent.
    AtMostOnce,
    /// Rows that do not match are passed, and nothing is kept.
    Filtered,
    /// Rows of parked keys are passed, and nothing is kept.
    Parking,
}

impl Unaudited {
    /// The reason, in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoStream => "its source is no stream",
            Self::Swept => "its column txid tells late rows in each turn",
            Self::Disabled => "[audit] enabled is false",
            Self::AtMostOnce => "its guarantee is at_most_once",
            Self::Filtered => "its source has a where",
            Self::Parking => "its on_poison is park_key",
        }
    }

    /// What has it recorded from then on.
    #[must_use]
    pub const fn fix(self) -> &'static str {
        match self {
            Self::NoStream => {
                "Look at a relay of [relay.source.stream]; `status` and `request list` count what others have not sent."
            }
            Self::Swept | Self::Filtered | Self::Parking => {
                "Write [audit] keep = \"7d\", for example: from then on it is recorded, and kept for so long."
            }
            Self::Disabled => {
                "Write [audit] enabled = true, and keep = \"7d\", for example: from then on it is recorded, and kept for so long."
            }
            Self::AtMostOnce => {
                "It is not known which of its rows have arrived: `outbox-relay request list --unknown` names those that may be missing."
            }
        }
    }
}
