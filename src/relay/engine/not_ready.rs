//! Why a relay may not run yet.

use crate::database::{Error, sqlstate};
use crate::relay::engine::identity::difference;
use crate::sink::{self, InvalidSetting};
use crate::source::finding::{Finding, Level};

/// The code of a relay that may have been renamed.
pub(in crate::relay) const RENAMED: &str = "cursor_renamed";

/// Why a relay may not run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unready {
    /// Live replicas run another configuration of the relay.
    Waiting,
    /// Something must be fixed; it is looked at again.
    Wrong {
        /// A short stable word.
        code: String,
        /// What is wrong.
        message: String,
        /// What fixes it.
        hint: String,
        /// Whether it will pass by itself, as an outage does.
        passing: bool,
    },
}

impl Unready {
    pub(in crate::relay) fn wrong(code: &str, message: String, hint: impl Into<String>) -> Self {
        Self::Wrong { code: code.to_owned(), message, hint: hint.into(), passing: false }
    }

    /// The same, with more words about what is wrong.
    pub(in crate::relay) fn adding(mut self, words: &str) -> Self {
        if let Self::Wrong { message, .. } = &mut self {
            message.push_str(words);
        }
        self
    }
}

impl Unready {
    /// The cursor belongs to something else than the relay is configured for.
    #[must_use]
    pub fn foreign(name: &str, identity: &str, configured: &str) -> Self {
        Self::wrong(
            "identity_changed",
            difference(name, identity, configured),
            format!(
                "Give the relay a new name, or restore its configuration; or accept the change: `outbox-relay cursor adopt \
                 {name}`."
            ),
        )
    }

    /// The relay's cursors are those of another number of shards, or of shards by another key.
    #[must_use]
    pub fn other_shards(relay: &str, other: &str, identity: &str, configured: &str) -> Self {
        Self::wrong(
            "shards_changed",
            difference(other, identity, configured),
            format!(
                "Restore shards and shard_key; or hand the rows over without loss: `outbox-relay cursor reshard {relay}`, \
                 while replicas with the former number still run (docs/CURSORS.md)."
            ),
        )
    }

    pub(in crate::relay) fn invalid(settings: &[InvalidSetting]) -> Self {
        let list: Vec<_> = settings.iter().map(ToString::to_string).collect();
        Self::wrong("invalid_setting", list.join("; "), "Correct these settings of the relay's sink.")
    }
}

impl Unready {
    /// The first error of a list, with the others' number.
    pub(in crate::relay) fn first(findings: Vec<Finding>) -> Self {
        let mut errors = findings.into_iter().filter(|finding| finding.level == Level::Error);
        let Some(error) = errors.next() else {
            return Self::wrong("check", "a check failed".to_owned(), "Run `outbox-relay check`.");
        };
        let more = errors.count();
        let fix = error.fix_sql.or(error.fix_setting).unwrap_or_else(|| "Run `outbox-relay check`.".to_owned());
        let hint = if more == 0 { fix } else { format!("{fix} ({more} more: run `outbox-relay check`)") };
        Self::wrong(error.code, error.message, hint)
    }

    pub(in crate::relay) fn panicked(error: &tokio::task::JoinError) -> Self {
        Self::Wrong {
            code: "panicked".to_owned(),
            message: format!("the relay's checks panicked: {error}"),
            hint: "They are made again; please report it with the log of this moment.".to_owned(),
            passing: true,
        }
    }
}

impl From<&Error> for Unready {
    fn from(error: &Error) -> Self {
        let meaning = sqlstate::meaning(error);
        let passing = meaning.cure != sqlstate::Cure::Halt;
        Self::Wrong { code: sqlstate::word(error), message: error.to_string(), hint: error.fix().to_owned(), passing }
    }
}

impl From<sink::Failure> for Unready {
    fn from(failure: sink::Failure) -> Self {
        let passing = failure.class == sink::Class::Retry;
        Self::Wrong { code: failure.code, message: failure.message, hint: failure.hint, passing }
    }
}
