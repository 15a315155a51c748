//! Lanes of jobs that are sent each on their own: those of one lane are sent in order, one at a time.
//!
//! Pure. A lane is known to the database by a number, so that it can be compared and kept whatever its text is. Lanes whose numbers are the same
//! are one lane: they keep more order than they need.

/// Which jobs keep their order among themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// The column, or the parameter of a request, whose text is a job's lane; without one all jobs are one lane.
    pub column: Option<String>,
}

impl Lanes {
    /// The number of the lane as SQL, of the text that `text` gives for a column.
    pub(super) fn number(&self, text: impl FnOnce(&str) -> String) -> String {
        match &self.column {
            Some(column) => format!(
                "COALESCE(pg_catalog.hashtextextended(({})::text COLLATE pg_catalog.\"C\", 0), 0)",
                text(column)
            ),
            None => "0::bigint".to_owned(),
        }
    }
}

/// How a claim looks for lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// How many due jobs are looked through, in their order.
    pub jobs: usize,
    /// Lanes that have not failed come first: one job tries whether the receiver is back.
    pub probes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_is_number_of_its_text_or_the_same_for_all() {
        let of =
            |column: Option<&str>| Lanes { column: column.map(str::to_owned) }.number(|name| format!("t.\"{name}\""));
        assert_eq!(of(None), "0::bigint");
        assert_eq!(
            of(Some("customer")),
            "COALESCE(pg_catalog.hashtextextended((t.\"customer\")::text COLLATE pg_catalog.\"C\", 0), 0)"
        );
    }
}
