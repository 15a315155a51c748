//! Why nothing is recorded of rows that a cursor has passed, and what to do about it. Pure.

use std::time::Duration;

use crate::audit::MADE_UP_FOR;
use crate::notation;
use crate::verify::operations::RecordEnd;

/// A range that a comparison can begin with while the slices of two hours ago are being deleted.
const SURELY_KEPT: Duration = Duration::from_secs(MADE_UP_FOR.as_secs() - 300);

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// What is recorded of then is of another table, order, filter or number of shards.
    Other,
    /// Replicas have passed them that record nothing.
    Unrecorded,
    /// It is older than what is kept: for so long, or for [`MADE_UP_FOR`].
    Old(Option<Duration>),
    /// An operation has ended what was recorded before.
    Ended(RecordEnd),
    /// That is not known.
    Unknown,
}

impl Reason {
    /// The reason, in words.
    pub(super) fn why(self) -> String {
        match self {
            Self::Other => "what was recorded then is of another table, order, filter or number of shards".to_owned(),
            Self::Unrecorded => {
                "a replica with another [audit], or under at_most_once, passed them and recorded nothing".to_owned()
            }
            Self::Old(Some(_)) => "what was recorded then is older than [audit] keep, and deleted".to_owned(),
            Self::Old(None) => {
                "what was recorded then was kept for two hours, because [audit] keep is not set".to_owned()
            }
            Self::Ended(RecordEnd { what, .. }) => format!("{what} has ended what was recorded before"),
            Self::Unknown => "nothing is recorded of then: by an older version, or with another [audit]".to_owned(),
        }
    }

    /// What can be done.
    pub(super) fn fix(self) -> String {
        match self {
            Self::Other => {
                "Compare rows that were passed after the change (--since). After a change of `where` alone, the configuration before it \
                 still compares those that were passed with it."
                    .to_owned()
            }
            Self::Unrecorded => {
                "Give all replicas of the relay the same [audit] and guarantee; compare rows that are passed from then on (--since)."
                    .to_owned()
            }
            Self::Old(Some(keep)) => {
                format!(
                    "Compare a range of the last {}, or of what is passed from now on (--since).",
                    notation::duration(keep)
                )
            }
            Self::Old(None) => {
                format!(
                    "Write [audit] keep = \"7d\", for example: what is passed from then on can be compared for so long. Without it a range \
                     of less than the last two hours can: --since {}.",
                    notation::duration(SURELY_KEPT)
                )
            }
            Self::Ended(RecordEnd { place, .. }) => {
                format!("Compare rows from there on: --since {place}. Those before cannot be compared any more.")
            }
            Self::Unknown => {
                "Compare what is passed from now on (--since). Write [audit] keep = \"7d\", for example, to compare it for so long."
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    // Guarantee: verify.left-out
    #[test]
    fn each_reason_has_a_fix_of_its_own() {
        let place = Timestamp::parse_rfc3339("2026-11-28T08:00:00Z").expect("valid");
        let reasons = [
            Reason::Other,
            Reason::Unrecorded,
            Reason::Old(Some(Duration::from_secs(86_400))),
            Reason::Old(None),
            Reason::Ended(RecordEnd { what: "a `cursor adopt`", place }),
            Reason::Unknown,
        ];
        for (n, one) in reasons.iter().enumerate() {
            for other in &reasons[n + 1..] {
                assert!(one.why() != other.why() && one.fix() != other.fix(), "{one:?} {other:?}");
            }
        }
        let ended = reasons[4];
        assert_eq!(ended.why(), "a `cursor adopt` has ended what was recorded before");
        let (fix, deleted) = (ended.fix(), Reason::Old(None).fix());
        assert!(fix.contains("--since 2026-11-28T08:00:00.000000Z") && !fix.contains("keep"), "{fix}");
        assert!(deleted.contains("Write [audit] keep") && deleted.ends_with("--since 115m."), "{deleted}");
    }
}
