//! A shard of a table: the rows whose key hashes to one number. Pure.
//!
//! Promise: every row belongs to exactly one shard, and rows of equal keys to the same. A row without a key belongs to
//! shard 0. The number is an immutable expression of the row alone, so that an index can hold it and no setting of a session
//! changes it.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::Stream;
use super::shape::{After, Shape};
use crate::database::quote_ident;
use crate::notation::hex;

pub mod index;
pub mod key;

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

    /// The index's name: of the table, the number of shards and a digest of what it is over, so that another key or another
    /// number has another name.
    fn index_name(&self, table: &str, config: &Stream) -> String {
        let digest = Sha256::digest([self.key.as_str(), &config.created_at, &config.id].join("\0"));
        let digest = hex(&digest[..3]);
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

/// Where a table is read in its order. The number of a shard stands first in every comparison and in the order, so that only the
/// index over it can yield the rows: with an equation alone, the planner may prefer to walk `(created_at, id)` and to leave the
/// rows of other shards out, all of them, where a shard is idle.
impl Shape {
    /// The same table, of which one cursor reads this shard.
    #[must_use]
    pub fn for_shard(self: &Arc<Self>, shard: Option<&Shard>) -> Arc<Self> {
        if self.shard.as_ref() == shard {
            return Arc::clone(self);
        }
        Arc::new(Self { shard: shard.cloned(), ..Self::clone(self) })
    }

    /// What stands before the instant in comparisons of rows: the number of a row's shard, and that of this one; nothing where
    /// all rows are read.
    pub(super) fn shard_terms(&self) -> Option<[String; 2]> {
        let shard = self.shard.as_ref()?;
        Some([shard.expression("t."), format!("{}::bigint", shard.number)])
    }

    /// The order, each part with this behind it.
    pub(super) fn sorted(&self, direction: &str) -> String {
        let shard = self.shard_terms().map(|[of, _]| of);
        let parts: Vec<String> = shard.into_iter().chain(self.order()).map(|part| part + direction).collect();
        parts.join(", ")
    }

    /// The condition for lying below the instant that is parameter number `n`, or for `<=` not above it.
    pub(super) fn below(&self, operator: &str, n: usize) -> String {
        let ([created_at, _], instant) = (self.order(), self.instant_parameter(n));
        let plain = format!("{created_at} {operator} {instant}");
        match self.shard_terms() {
            None => plain,
            Some([of, number]) => format!("{plain} AND ({of}, {created_at}) {operator} ({number}, {instant})"),
        }
    }

    /// The condition for lying at or below a row whose parameters begin at number `first`.
    pub(super) fn up_to(&self, first: usize) -> String {
        let [created_at, id] = self.order();
        let instant = self.instant_parameter(first);
        let [of, number] = self.shard_terms().map_or_else(Default::default, |terms| terms.map(|term| term + ", "));
        let parameter = format!("${}::text::{}", first + 1, self.id_type.sql());
        format!("{created_at} <= {instant} AND ({of}{created_at}, {id}) <= ({number}{instant}, {parameter})")
    }

    /// The condition for lying after a position whose parameters begin at number `first`. The first comparison says
    /// nothing new, but prunes partitions, which a row comparison does not.
    pub(super) fn beyond(&self, after: After, first: usize) -> String {
        let ([created_at, id], instant) = (self.order(), self.instant_parameter(first));
        let parameter = format!("${}::text::{}", first + 1, self.id_type.sql());
        match (after, self.shard_terms()) {
            (After::Nothing, None) => String::new(),
            (After::Nothing, Some([of, number])) => format!(" AND {of} >= {number}"),
            (After::Instant, None) => format!(" AND {created_at} >= {instant}"),
            (After::Instant, Some([of, number])) => {
                format!(" AND {created_at} >= {instant} AND ({of}, {created_at}) >= ({number}, {instant})")
            }
            (After::Row, None) => {
                format!(" AND {created_at} >= {instant} AND ({created_at}, {id}) > ({instant}, {parameter})")
            }
            (After::Row, Some([of, number])) => {
                format!(
                    " AND {created_at} >= {instant} AND ({of}, {created_at}, {id}) > ({number}, {instant}, {parameter})"
                )
            }
        }
    }

    /// The newest row below `$1` and not before `$2` of each of so many shards: number, instant and id. The second bound keeps
    /// partitions that all have passed out of it.
    #[must_use]
    pub fn newest_of_shards_sql(&self, shard: &Shard) -> String {
        let ([created_at, id], of) = (self.order(), shard.expression("t."));
        let (instant, [below, from]) = (self.instant(), [1, 2].map(|n| self.instant_parameter(n)));
        format!(
            "SELECT s.number, n.* FROM pg_catalog.generate_series(0::bigint, {}) AS s (number) CROSS JOIN LATERAL \
             (SELECT {instant}, {id}::text FROM {} AS t WHERE {created_at} < {below} AND ({of}, {created_at}) < (s.number, {below}) \
             AND {created_at} >= {from} AND ({of}, {created_at}) >= (s.number, {from}) ORDER BY {of} DESC, {created_at} DESC, {id} DESC LIMIT 1) AS n",
            shard.of - 1,
            self.config.table.quoted(),
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
            standbys: 0,
            max_hold: None,
            filter: std::collections::BTreeMap::new(),
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
        let sql = shard("k\"; DROP TABLE x; --", 2).expression("t.");
        assert!(sql.contains("t.\"k\"\"; DROP TABLE x; --\"::text"), "{sql}");
    }
}
