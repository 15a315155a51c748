//! The kinds of sinks, and what the configuration asks of each. A new kind is a line of the list below; the compiler then names the
//! properties that are missing.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A kind of sinks: the table below `[relay.sink]`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// As in the configuration.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// Records to a Kafka topic.
    Kafka = "kafka",
    /// One HTTP request per message.
    Http = "http",
    /// One SMS per message, by a provider's API.
    Sms = "sms",
    /// One signed HTTP request per message, to public addresses.
    Webhook = "webhook",
    /// One mail per message, by SMTP.
    Email = "email",
    /// A statement per message or batch, in the cursor's own transaction.
    Sql = "sql",
    /// One JSON line per message on standard output, for dry runs.
    Stdout = "stdout",
    /// A program per action of a schedule.
    Command = "command",
    /// What the program has registered.
    Custom = "custom",
}

/// What the rows of one lane, or of one parked key, have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKey {
    /// The record's key: `lane` would be a second one.
    OfTheRecord,
    /// The receiver, unless `lane` names a column.
    Receiver,
    /// The column that `lane` names.
    Column,
    /// Nothing: its messages have no key.
    None,
}

impl Kind {
    /// By its name in the configuration.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether it sends messages one by one, to people or their systems, or may: of a sink of one's own only the sink itself knows.
    #[must_use]
    pub const fn may_be_one_by_one(self) -> bool {
        match self {
            Self::Http | Self::Sms | Self::Webhook | Self::Email | Self::Command | Self::Custom => true,
            Self::Kafka | Self::Sql | Self::Stdout => false,
        }
    }

    /// Whether it waits for the answer to each message, so that several can be on their way side by side.
    #[must_use]
    pub const fn waits_for_answers(self) -> bool {
        match self {
            Self::Http | Self::Sms | Self::Webhook | Self::Email | Self::Custom => true,
            Self::Kafka | Self::Sql | Self::Stdout | Self::Command => false,
        }
    }

    /// Whether it sends to the cluster of `[kafka]`, by a client that its checks start.
    #[must_use]
    pub const fn goes_to_cluster(self) -> bool {
        match self {
            Self::Kafka => true,
            Self::Http
            | Self::Sms
            | Self::Webhook
            | Self::Email
            | Self::Sql
            | Self::Stdout
            | Self::Command
            | Self::Custom => false,
        }
    }

    /// Whether SQL of the user's runs in the replica's own sessions: it may write any table, also one that is relayed.
    #[must_use]
    pub const fn runs_user_sql(self) -> bool {
        match self {
            Self::Sql => true,
            Self::Kafka
            | Self::Http
            | Self::Sms
            | Self::Webhook
            | Self::Email
            | Self::Stdout
            | Self::Command
            | Self::Custom => false,
        }
    }

    /// Whether its receivers know no idempotency keys, so that what is sent again arrives again. Sinks that serve no requests
    /// are not meant.
    #[must_use]
    pub const fn knows_no_idempotency_keys(self) -> bool {
        match self {
            Self::Sms | Self::Email => true,
            Self::Kafka | Self::Http | Self::Webhook | Self::Sql | Self::Stdout | Self::Command | Self::Custom => false,
        }
    }

    /// What its lanes and parked keys go by.
    #[must_use]
    pub const fn lane_key(self) -> LaneKey {
        match self {
            Self::Kafka => LaneKey::OfTheRecord,
            Self::Sms | Self::Email => LaneKey::Receiver,
            Self::Http | Self::Webhook | Self::Custom => LaneKey::Column,
            Self::Sql | Self::Stdout | Self::Command => LaneKey::None,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
