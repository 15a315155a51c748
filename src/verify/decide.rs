//! What a differing id is: the one place where that is decided. Pure.
//!
//! There is no record of what each turn delivered yet. A row that a cursor has passed was read, published and acknowledged, unless
//! something else is known of it; a record of deliveries would replace [`Evidence::read`], and nothing else.

/// How table, deliveries and topic differ about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The table has it, and it was never published.
    NotDelivered,
    /// It was published, or passed as if it had been, and the topic does not have it.
    NotInTopic,
    /// Its first record comes after one of a later row.
    OutOfOrder,
    /// The topic has it, and the table does not: rolled back, or deleted.
    NotInTable,
    /// The topic has more records of it than the table has rows.
    Twice,
}

impl Kind {
    /// All, the worst first.
    pub const ALL: [Self; 5] = [Self::NotDelivered, Self::NotInTopic, Self::OutOfOrder, Self::NotInTable, Self::Twice];

    /// The word in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotDelivered => "not_delivered",
            Self::NotInTopic => "not_in_topic",
            Self::OutOfOrder => "out_of_order",
            Self::NotInTable => "not_in_table",
            Self::Twice => "twice",
        }
    }
}

/// Why a row that the topic lacks is not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    /// It is a dead letter, and listed as one.
    DeadLetter,
    /// It waits behind a dead letter of its key (`park_key`), and is sent after that.
    Parked,
    /// It became visible below the position after the last turn; the next one finds it and sends it late.
    LateToCome,
    /// An operator gave its dead letter up, and retention has removed that since, or a reshard has ended its cursor.
    Discarded,
    /// An operator moved the cursor over it.
    Skipped,
    /// Its outcome is unknown, and listed as such (`at_most_once`).
    Unknown,
    /// It is older than the relay, which began after it.
    BeforeStart,
    /// It is older than what the topic still has.
    Retention,
}

impl Known {
    /// The word in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadLetter => "dead_letter",
            Self::Parked => "parked",
            Self::LateToCome => "late_to_come",
            Self::Discarded => "discarded",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
            Self::BeforeStart => "before_start",
            Self::Retention => "beyond_retention",
        }
    }
}

/// Why a row that the topic lacks is named, and no repair publishes it: an operator may have wanted that it is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Some of the cursors before a reshard passed over it, and of which one it was is not known.
    FormerShard,
    /// Its cursor took over another table or partition later.
    Adopted,
}

impl Withheld {
    /// All.
    pub const ALL: [Self; 2] = [Self::FormerShard, Self::Adopted];

    /// The reason, in a sentence about several rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FormerShard => {
                "before a `cursor reshard` only some of the shards passed over them, and which of these they were of is not known"
            }
            Self::Adopted => {
                "they are not after the place of a `cursor adopt`, which accepts that rows at or below the position are never sent"
            }
        }
    }
}

/// What was found of one id when it was looked at by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How many rows have it, wherever they are now.
    pub rows: u64,
    /// How many of them are in the range and have been passed.
    pub due: u64,
    /// How many records have it, those that an operator had sent again left out.
    pub records: u64,
    /// How many further records are marked as replayed.
    pub replayed: u64,
    /// How often an operator has moved its cursor back over it.
    pub moved_back: u64,
    /// Its first record comes after one of a later row.
    pub below: bool,
    /// Why it may be missing.
    pub known: Option<Known>,
    /// Whether the publisher has read the row; none if that cannot be told.
    pub read: Option<bool>,
}

/// What follows from the evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How it differs; empty when all is explained by now.
    pub kinds: Vec<Kind>,
    /// What explains that it is missing.
    pub known: Option<Known>,
}

/// Decides.
#[must_use]
pub fn decide(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::default();
    let all = evidence.records + evidence.replayed;
    if evidence.due > all {
        match (evidence.known, evidence.read) {
            (Some(known), _) => verdict.known = Some(known),
            (None, Some(false)) => verdict.kinds.push(Kind::NotDelivered),
            (None, Some(true) | None) => verdict.kinds.push(Kind::NotInTopic),
        }
    }
    if evidence.below && evidence.records > 0 {
        verdict.kinds.push(Kind::OutOfOrder);
    }
    if evidence.rows == 0 && all > 0 {
        verdict.kinds.push(Kind::NotInTable);
    }
    if evidence.records > evidence.rows.max(1) + evidence.moved_back {
        verdict.kinds.push(Kind::Twice);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Evidence =
        Evidence { rows: 1, due: 1, records: 1, replayed: 0, moved_back: 0, below: false, known: None, read: None };

    // Guarantee: verify.kinds
    #[test]
    fn each_kind_follows_from_its_evidence() {
        let lost = Evidence { records: 0, ..ROW };
        let moved = Evidence { rows: 1, due: 0, records: 0, ..ROW };
        for (evidence, kinds) in [
            (ROW, vec![]),
            (lost, vec![Kind::NotInTopic]),
            (Evidence { read: Some(true), ..lost }, vec![Kind::NotInTopic]),
            (Evidence { read: Some(false), ..lost }, vec![Kind::NotDelivered]),
            (Evidence { replayed: 1, ..lost }, vec![]),
            (Evidence { replayed: 3, ..ROW }, vec![]),
            (Evidence { records: 2, ..ROW }, vec![Kind::Twice]),
            (Evidence { records: 2, moved_back: 1, ..ROW }, vec![]),
            (Evidence { rows: 2, due: 2, records: 1, ..ROW }, vec![Kind::NotInTopic]),
            (Evidence { rows: 2, due: 2, records: 2, ..ROW }, vec![]),
            (Evidence { rows: 0, due: 0, ..ROW }, vec![Kind::NotInTable]),
            (Evidence { rows: 0, due: 0, records: 2, ..ROW }, vec![Kind::NotInTable, Kind::Twice]),
            (Evidence { below: true, ..ROW }, vec![Kind::OutOfOrder]),
            (moved, vec![]),
            (Evidence { rows: 0, due: 0, records: 0, ..ROW }, vec![]),
        ] {
            assert_eq!(decide(&evidence).kinds, kinds, "{evidence:?}");
        }
    }

    #[test]
    fn what_is_known_of_a_missing_row_explains_that_and_nothing_else() {
        let known = Evidence { records: 0, known: Some(Known::DeadLetter), ..ROW };
        assert_eq!(decide(&known), Verdict { kinds: vec![], known: Some(Known::DeadLetter) });
        let there = Evidence { records: 2, ..known };
        assert_eq!(decide(&there), Verdict { kinds: vec![Kind::Twice], known: None });
    }
}
