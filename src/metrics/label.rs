//! Values of labels that are not names from the configuration.

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// Rows were published and the cursor advanced.
    Relayed,
    /// There was nothing to do.
    Idle,
    /// Another replica holds the cursor.
    Busy,
    /// The cursor is paused.
    Paused,
    /// The cursor is halted, or has just been.
    Halted,
    /// It failed and will be retried.
    Failed,
}

impl TurnResult {
    pub(super) const ALL: [Self; 6] = [Self::Relayed, Self::Idle, Self::Busy, Self::Paused, Self::Halted, Self::Failed];

    /// Whether a cursor in order has such turns: others are exported when there was one.
    pub(super) const fn is_usual(self) -> bool {
        matches!(self, Self::Relayed | Self::Idle | Self::Busy | Self::Failed)
    }

    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Relayed => "relayed",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Paused => "paused",
            Self::Halted => "halted",
            Self::Failed => "failed",
        }
    }
}

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Taking the cursor's lock.
    Lock,
    /// Looking for writers, for the horizon.
    Scan,
    /// Reading rows.
    Fetch,
    /// Publishing and waiting for acknowledgements.
    Publish,
    /// Moving the position.
    Advance,
    /// Committing.
    Commit,
}

impl Phase {
    pub(super) const ALL: [Self; 6] = [Self::Lock, Self::Scan, Self::Fetch, Self::Publish, Self::Advance, Self::Commit];

    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Scan => "scan",
            Self::Fetch => "fetch",
            Self::Publish => "publish",
            Self::Advance => "advance",
            Self::Commit => "commit",
        }
    }
}

/// Where the time of a row goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Created, not visible.
    CommitWait,
    /// Visible, not below the horizon.
    HorizonHold,
    /// Safe to read, waiting for a turn.
    Queue,
    /// At the sink.
    Publish,
}

impl Stage {
    /// All of them, in the order in which a row goes through them.
    pub const ALL: [Self; 4] = [Self::CommitWait, Self::HorizonHold, Self::Queue, Self::Publish];

    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CommitWait => "commit_wait",
            Self::HorizonHold => "horizon_hold",
            Self::Queue => "queue",
            Self::Publish => "publish",
        }
    }
}

/// Why publishing stopped: exactly one of these for each time that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// It will pass, and the receiver has nothing of the message.
    Retry,
    /// The message will never be accepted.
    Poison,
    /// Configuration or credentials.
    Fatal,
    /// It will be retried, and the receiver may have the message already.
    Ambiguous,
}

impl PublishError {
    pub(super) const ALL: [Self; 4] = [Self::Retry, Self::Poison, Self::Fatal, Self::Ambiguous];

    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Poison => "poison",
            Self::Fatal => "fatal",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// What a connection to PostgreSQL is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// Open, waiting for work.
    Idle,
    /// At work.
    InUse,
}

impl PoolState {
    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::InUse => "in_use",
        }
    }
}
