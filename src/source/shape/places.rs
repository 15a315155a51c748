//! What is asked of a table about places in it, without what its rows hold: the next, newest and oldest row, how many there are.

use super::{After, Shape, Within};

impl Shape {
    /// The next row to be delivered after a position: parameters as of [`Self::fetch_sql`].
    #[must_use]
    pub fn next_sql(&self, after: After) -> String {
        let [_, id] = self.order();
        format!(
            "SELECT {}, {id}::text FROM {} AS t WHERE {}{}{} ORDER BY {} LIMIT $2::bigint",
            self.instant(),
            self.config.table.quoted(),
            self.below("<", 1),
            self.beyond(after, 3),
            self.and_matches(),
            self.sorted(""),
        )
    }

    /// The newest row below `$1`: instant and id.
    #[must_use]
    pub fn newest_sql(&self) -> String {
        let [_, id] = self.order();
        format!(
            "SELECT {}, {id}::text FROM {} AS t WHERE {}{} ORDER BY {} LIMIT 1",
            self.instant(),
            self.config.table.quoted(),
            self.below("<", 1),
            self.beyond(After::Nothing, 2),
            self.sorted(" DESC"),
        )
    }

    /// The oldest row to be delivered after a position that is not in the future (`$1`: now): its instant.
    #[must_use]
    pub fn oldest_sql(&self, after: After) -> String {
        format!(
            "SELECT {} FROM {} AS t WHERE {}{}{} ORDER BY {} LIMIT 1",
            self.instant(),
            self.config.table.quoted(),
            self.below("<=", 1),
            self.beyond(after, 2),
            self.and_counts(),
            self.sorted(""),
        )
    }

    /// How many rows that are to be delivered lie after a position and not in the future (`$1`: now), counted up to `$2`.
    #[must_use]
    pub fn backlog_sql(&self, after: After) -> String {
        format!(
            "SELECT pg_catalog.count(*) FROM (SELECT FROM {} AS t WHERE {}{}{} ORDER BY {} LIMIT $2::bigint) AS backlog",
            self.config.table.quoted(),
            self.below("<=", 1),
            self.beyond(after, 3),
            self.and_counts(),
            self.sorted(""),
        )
    }

    /// Whether a relation of this name, which is no part of the table any more, has a row that is to be delivered after a position: its
    /// parts are `$1` and `$2`.
    #[must_use]
    pub fn waiting_sql(&self, name: &str, after: After) -> String {
        let own = self.shard_terms().map_or_else(String::new, |[of, number]| format!(" AND {of} = {number}"));
        format!(
            "SELECT EXISTS (SELECT FROM ONLY {name} AS t WHERE true{}{own}{} ORDER BY {} LIMIT 1)",
            self.beyond(after, 1),
            self.and_matches(),
            self.sorted(""),
        )
    }

    /// Whether one partition or child alone has a row at or below a position.
    #[must_use]
    pub fn passed_sql(&self, within: &Within<'_>, after: After) -> String {
        let [created_at, id] = self.order();
        let bound = match after {
            After::Nothing => "false".to_owned(),
            After::Instant => format!("{created_at} < {}", self.instant_parameter(1)),
            After::Row => format!(
                "{created_at} <= {} AND ({created_at}, {id}) <= ({}, $2::text::{})",
                self.instant_parameter(1),
                self.instant_parameter(1),
                self.id_type.sql()
            ),
        };
        let (from, only) = match within {
            Within::Itself(name) => (format!("ONLY {name}"), String::new()),
            Within::Table { partition, constraint } => {
                let constraint = constraint.map_or_else(String::new, |text| format!(" AND ({text})"));
                (self.config.table.quoted(), format!(" AND t.tableoid = {partition}::oid{constraint}"))
            }
        };
        // Rows of other shards are not this cursor's to pass.
        let own = self.shard_terms().map_or_else(String::new, |[of, number]| format!(" AND {of} = {number}"));
        let sorted = self.sorted("");
        format!("SELECT EXISTS (SELECT FROM {from} AS t WHERE {bound}{own}{only} ORDER BY {sorted} LIMIT 1)")
    }
}
