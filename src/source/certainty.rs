//! How sure it is that no committed row of a table is skipped. Pure.
//!
//! The same four words stand in `check`, in `status` and in the documents, and mean the same everywhere.

/// How sure a horizon rule is for one table, the least sure first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// Rows can commit below the position, and are skipped then.
    Unproven,
    /// A row is skipped only if its transaction stalls for longer than the latency window between reading the clock and
    /// becoming visible to others.
    Bounded,
    /// No row is skipped whose `created_at` is the column's default; one with a value of its own can be.
    ProvenForDefault,
    /// No row is skipped, whatever value its writer sends.
    Proven,
}

impl Certainty {
    /// The words used in `check` and `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Bounded => "bounded by the latency window",
            Self::ProvenForDefault => "proven for rows that use the default",
            Self::Proven => "proven",
        }
    }

    /// Whether it holds for every row.
    #[must_use]
    pub const fn proven(self) -> bool {
        matches!(self, Self::Proven)
    }
}
