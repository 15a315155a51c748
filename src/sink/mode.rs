//! How a publication sends, and whether it goes on.

use std::time::Instant;

/// How one publication sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Each message waits until the one before it is acknowledged: a refused one stands alone.
    pub alone: bool,
    /// Why they come out of their order, if they do: receivers see it.
    pub mark: Option<Mark>,
    /// Over how many partitions keys are spread; none leaves that to the client.
    pub partitions: Option<i32>,
    /// Nothing is handed over from then on. Asked before each message: a process that was stopped in the middle of a batch
    /// would go on with its rest when it wakes, while another has the lock.
    pub until: Option<Instant>,
    /// The publication is cut then, where that is later than [`Self::until`]: an answer that comes before it counts.
    pub cut: Option<Instant>,
    /// A backlog is sent: it matters more how many messages arrive than how soon each does.
    pub backlog: bool,
}

/// Why messages come behind newer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// An operator has them sent again.
    Replayed,
    /// Their rows became visible behind their cursor's position.
    Late,
}

impl Mark {
    /// The word that receivers see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replayed => "replayed",
            Self::Late => "late",
        }
    }
}

impl Mode {
    /// Whether nothing may be handed over any more.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Whether a publication takes more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Push on.
    Continue,
    /// It has failed or is cut; call `finish` for the prefix.
    Stop,
}
