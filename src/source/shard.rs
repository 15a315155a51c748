//! A shard of a table: the rows whose key hashes to one number. Pure.
//!
//! Promise: every row belongs to exactly one shard, and rows of equal keys to the same. A row without a key belongs to
//! shard 0. The number is an immutable expression of the row alone, so that an index can hold it and no setting of a session
//! changes it.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::Stream;
use super::shape::Shape;
use crate::database::quote_ident;

pub mod index;

/// The most shards of one relay: each costs a cursor, and a turn's two connections while it is busy.
pub const MOST: u64 = 64;

/// Identifiers are cut at this many bytes.
const LONGEST_NAME: usize = 63;

/// Which rows of a table one cursor reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// The column whose text is hashed.
    pub key: String,
    /// How many shards there are.
    pub of: u32,
    /// Its number, from 0 on.
    pub number: u32,
}

impl Shard {
    /// Whether texts of this type are the same in every session: only such an expression may stand in an index.
    #[must_use]
    pub fn accepts(type_name: &str) -> bool {
        matches!(type_name, "text" | "character varying" | "smallint" | "integer" | "bigint" | "uuid")
    }

    /// The number of a row's shard, as SQL; `row` stands before the column, for example `t.`. The collation is named, because
    /// a hash needs one, and a column's own may count different texts as equal.
    #[must_use]
    pub fn expression(&self, row: &str) -> String {
        format!(
            "(COALESCE(pg_catalog.hashtextextended({row}{}::text COLLATE pg_catalog.\"C\", 0), 0) & 2147483647) % {}",
            quote_ident(&self.key),
            self.of
        )
    }

    /// The condition that a row `t` belongs to this shard.
    pub(super) fn condition(&self) -> String {
        format!("{} = {}", self.expression("t."), self.number)
    }

    /// The index's name: of the table, the number of shards and a digest of what it is over, so that another key or another
    /// number has another name.
    fn index_name(&self, table: &str, config: &Stream) -> String {
        let mut digest = String::new();
        for byte in &Sha256::digest([self.key.as_str(), &config.created_at, &config.id].join("\0"))[..3] {
            let _ = write!(digest, "{byte:02x}");
        }
        let tail = format!("_{}_shards_{digest}", self.of);
        let mut end = table.len().min(LONGEST_NAME - tail.len());
        while !table.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}{tail}", &table[..end])
    }

    /// Creates the index that turns of this relay's shards read by.
    fn index_sql(&self, name: &str, relation: &str, config: &Stream, concurrently: bool) -> String {
        format!(
            "CREATE INDEX {}IF NOT EXISTS {} ON {relation} (({}), {}, {});",
            if concurrently { "CONCURRENTLY " } else { "" },
            quote_ident(name),
            self.expression(""),
            quote_ident(&config.created_at),
            quote_ident(&config.id),
        )
    }

    /// Whether this is the expression, as the server prints the one of an index: it leaves out what need not be said and adds
    /// parentheses and casts of constants.
    fn is_printed(&self, printed: &str) -> bool {
        bare(printed) == bare(&self.expression(""))
    }
}

impl Shape {
    /// The same table, of which one cursor reads this shard.
    #[must_use]
    pub fn for_shard(self: &Arc<Self>, shard: Option<&Shard>) -> Arc<Self> {
        if self.shard.as_ref() == shard {
            return Arc::clone(self);
        }
        Arc::new(Self { shard: shard.cloned(), ..Self::clone(self) })
    }

    /// A further condition: the rows of its shard.
    pub(super) fn of_shard(&self) -> String {
        self.shard.as_ref().map_or_else(String::new, |shard| format!(" AND {}", shard.condition()))
    }

    /// The newest row below `$1` of each of so many shards: number, instant and id.
    #[must_use]
    pub fn newest_of_shards_sql(&self, shard: &Shard) -> String {
        let [created_at, id] = self.order();
        format!(
            "SELECT s.number, n.* FROM pg_catalog.generate_series(0, {}) AS s (number) CROSS JOIN LATERAL \
             (SELECT {}, {id}::text FROM {} AS t WHERE {created_at} < {} AND {} = s.number \
             ORDER BY {created_at} DESC, {id} DESC LIMIT 1) AS n",
            shard.of - 1,
            self.instant(),
            self.config.table.quoted(),
            self.instant_parameter(1),
            shard.expression("t."),
        )
    }
}

/// Without what two spellings of one expression may differ in.
fn bare(sql: &str) -> String {
    let sql = sql.replace("::bigint", "").replace("::text", "").replace("pg_catalog.", "");
    sql.chars().filter(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '"')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{RuleChoice, TableName};

    fn stream(table: &str) -> Stream {
        Stream {
            table: TableName { schema: "public".into(), name: table.into() },
            id: "id".into(),
            created_at: "created_at".into(),
            horizon: RuleChoice::Auto,
            time_zone: None,
            latency_window: None,
        }
    }

    fn shard(key: &str, of: u32) -> Shard {
        Shard { key: key.to_owned(), of, number: 0 }
    }

    #[test]
    fn the_expression_is_known_again_as_the_server_prints_it_and_no_other_is() {
        let printed = |key: &str| {
            format!(
                "(((COALESCE(hashtextextended((({key})::text COLLATE \"C\"), (0)::bigint), (0)::bigint) & \
                 (2147483647)::bigint) % (4)::bigint))"
            )
        };
        assert!(shard("customer", 4).is_printed(&printed("customer")));
        assert!(shard("Customer No", 4).is_printed(&printed("\"Customer No\"")));
        assert!(!shard("customer", 8).is_printed(&printed("customer")));
        assert!(!shard("customer", 4).is_printed(&printed("tenant")));
        assert!(!shard("customer", 4).is_printed("customer"));
    }

    #[test]
    fn names_of_indexes_fit_and_differ_by_key_and_number() {
        let long = "ä".repeat(60);
        for table in ["bookings", &long] {
            let name = |shard: &Shard| shard.index_name(table, &stream(table));
            let names = [name(&shard("a", 4)), name(&shard("b", 4)), name(&shard("a", 8))];
            assert!(names.iter().all(|name| name.len() <= LONGEST_NAME), "{names:?}");
            assert!(names[0] != names[1] && names[0] != names[2]);
        }
    }

    #[test]
    fn hostile_column_names_stay_identifiers() {
        let sql = shard("k\"; DROP TABLE x; --", 2).condition();
        assert!(sql.contains("t.\"k\"\"; DROP TABLE x; --\"::text"), "{sql}");
    }
}
