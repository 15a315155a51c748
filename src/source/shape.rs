//! What a source's table looks like, as far as reading it needs: relations, rule, and the SQL made from them.
//!
//! Pure. Every name goes through [`quote_ident`], so that any identifier is safe and keeps its case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

mod debezium;
mod id_type;
mod instants;
mod places;

use super::cast::{self, Cast};
use super::certainty::Certainty;
use super::horizon::Margin;
use super::shard::Shard;
use super::{Rule, Stream, TableName};
use crate::database::quote_ident;
use crate::message::{ColumnType, Field};
use crate::position::Position;

pub use id_type::IdType;

/// A source's table as the catalog shows it, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What was configured.
    pub config: Stream,
    /// Which of its rows are read; all when there is none.
    pub shard: Option<Shard>,
    /// The table's oid.
    pub root: u32,
    /// Its ancestors' oids.
    pub ancestors: BTreeSet<u32>,
    /// Its own oid and its descendants'.
    pub descendants: BTreeSet<u32>,
    /// Which writers hold the horizon back.
    pub rule: Rule,
    /// How sure the rule is for this table.
    pub certainty: Certainty,
    /// Why the trigger that stamps `created_at` does not count, for people, behind a semicolon; empty where it does, or there is none.
    pub trigger: String,
    /// Which rule the column needs: another one than [`Self::rule`] where the configuration asks for more.
    pub needs: Rule,
    /// What is subtracted from their bounds.
    pub margin: Margin,
    /// The relay's own role cannot write the table, so its transactions need not hold the horizon back.
    pub own_role_only_reads: bool,
    /// What positions are compared by; see [`super::order`].
    pub order: String,
    /// The numbers of `created_at` and `id` in the table: another column can have taken such a name.
    pub order_columns: Vec<i16>,
    /// What a snapshot says of `created_at` and `id`, as long as that holds.
    pub order_facts: BTreeSet<String>,
    /// The type of the id column.
    pub id_type: IdType,
    /// Its columns' types.
    pub columns: BTreeMap<String, ColumnType>,
    /// Their numbers in the table: another column can have taken a name.
    pub column_numbers: BTreeMap<String, i16>,
    /// Columns of type `bytea`: as a payload they are read as their bytes.
    pub bytea_columns: BTreeSet<String>,
    /// Columns of the database's own types, whose text their output functions make.
    pub own_columns: BTreeSet<String>,
    /// Columns of enums, and the oid of the enum of each.
    pub enums: BTreeMap<String, u32>,
    /// Casts of its columns' types whose functions no superuser owns.
    pub casts: Vec<Cast>,
    /// The number of the column `txid` by which late rows are found; none where they are not.
    pub sweep: Option<i16>,
    /// There is a text column `traceparent`: a trace context to pass on.
    pub traceparent: bool,
    /// It is `outbox.message`, and its column `headers` can be read: headers to pass on.
    pub headers: bool,
}

impl Shape {
    /// All relations whose locks count.
    #[must_use]
    pub fn family(&self) -> Vec<u32> {
        self.ancestors.union(&self.descendants).copied().collect()
    }

    /// What a scan of every open transaction of the database needs, whichever table this is.
    #[must_use]
    pub fn of_all_transactions(&self) -> Self {
        let table = TableName { schema: String::new(), name: String::new() };
        Self {
            // All of them are to be known, however long they have been open.
            config: Stream { table, max_hold: None, ..self.config.clone() },
            ancestors: BTreeSet::new(),
            descendants: BTreeSet::new(),
            rule: Rule::Transactions,
            margin: Margin { window: Self::window(&self.config, Rule::Transactions), ..self.margin },
            own_role_only_reads: false,
            ..self.clone()
        }
    }

    /// After how long a transaction that holds the horizon back is not waited for: only where its rows are then found.
    #[must_use]
    pub fn passes_over_after(&self) -> Option<Duration> {
        self.config.max_hold.filter(|_| self.sweep.is_some())
    }

    /// The same, with a horizon that every transaction holds back until its end: what an operator passes by a command must have come.
    #[must_use]
    pub fn waiting_for_all(self) -> Self {
        Self { config: Stream { max_hold: None, ..self.config }, ..self }
    }

    /// What is read of which table, as a text that is another one for anything else.
    #[must_use]
    pub fn reads(&self) -> String {
        let Stream { created_at, id, .. } = &self.config;
        let shard = self.shard.as_ref().map(|shard| format!(" {} {}/{}", shard.key, shard.number, shard.of));
        let (shard, matches) = (shard.unwrap_or_default(), self.and_configured());
        format!("{} {created_at} {id}{shard} {}{matches}", self.root, self.order)
    }

    /// Whether positions that were reached by the shape before do not rest on what holds now: another rule, or one that is
    /// less sure.
    #[must_use]
    pub fn weakens(&self, before: &Self) -> bool {
        before.rule != self.rule || self.certainty < before.certainty
    }

    /// The latency window in force.
    #[must_use]
    pub fn window(config: &Stream, rule: Rule) -> Duration {
        config.latency_window.unwrap_or(match rule {
            Rule::Writers | Rule::Window => Duration::from_millis(5),
            Rule::Transactions => Duration::from_millis(100),
        })
    }

    pub(super) fn order(&self) -> [String; 2] {
        [format!("t.{}", quote_ident(&self.config.created_at)), format!("t.{}", quote_ident(&self.config.id))]
    }

    fn value(&self, field: &Field) -> String {
        match (field, self.matches()) {
            (Field::Matches, Some(matches)) => format!("{matches}::text"),
            _ => self.value_sql(field),
        }
    }

    /// A field of the row `t`, of one that matches.
    pub(super) fn value_sql(&self, field: &Field) -> String {
        let kinds = [&self.bytea_columns, &self.own_columns];
        value(field, kinds, self.columns.keys().map(String::as_str), self.root)
    }

    /// The rows after a position, oldest first, below `$1`; at most `$2`; the position's parts are `$3` and `$4`.
    /// Columns: instant, id, then the fields. Of a row with more than `most` bytes nothing comes: the statement fails at it, and at one
    /// that has no instant.
    #[must_use]
    pub fn fetch_sql(&self, fields: &[Field], after: After, most: Option<usize>) -> String {
        let own = |field: &Field| match field {
            Field::Matches => self.value(field),
            _ => self.if_matches(self.value(field)),
        };
        // No value of theirs comes, but their names: which columns the object has was decided when the catalog was read.
        let names = fields.contains(&Field::Debezium(None)).then(|| "(CASE WHEN false THEN t.* END).*".to_owned());
        self.page_sql(fields.iter().map(own).chain(names), after, &self.id_if_matches_sql(fields, most))
    }

    /// The same, with the columns of the JSON document among the fields, the only one, behind the others.
    #[must_use]
    pub fn parts_sql(&self, fields: &[Field], after: After, most: Option<usize>) -> String {
        let id = self.id_of_parts_sql(fields, most);
        let (documents, others): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.is_document());
        let others = others.into_iter().map(|field| self.value(field));
        let parts = documents.into_iter().flat_map(|document| match document {
            Field::Columns(columns) | Field::Debezium(Some(columns)) => {
                columns.iter().map(|column| format!("t.{}", quote_ident(column))).collect()
            }
            _ => vec!["t.*".to_owned()],
        });
        self.page_sql(others.chain(parts), after, &id)
    }

    fn page_sql(&self, fields: impl Iterator<Item = String>, after: After, id: &str) -> String {
        let list: Vec<_> = [self.exact_instant(), id.to_owned()].into_iter().chain(fields).collect();
        format!(
            "SELECT {} FROM {} AS t WHERE {}{} ORDER BY {} LIMIT $2::bigint",
            list.join(", "),
            self.config.table.quoted(),
            self.below("<", 1),
            self.beyond(after, 3),
            self.sorted(""),
        )
    }

    /// Begins a reading transaction and locks the table, its partitions and the tables that inherit from it, before a
    /// snapshot is taken.
    ///
    /// `LOCK TABLE` takes no snapshot, so the first statement after it takes one that is newer than the lock. A `SELECT`
    /// would take its snapshot first and then wait: it would see a relation that was rewritten meanwhile empty, and one
    /// that was detached as a part of the table (`tests/it/postgres_facts.rs`).
    #[must_use]
    pub fn begin_sql(&self) -> String {
        format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE {} IN ACCESS SHARE MODE",
            self.config.table.quoted()
        )
    }

    /// The row at a position, as it is now: `$1` and `$2` are its parts. Columns as in [`Self::fetch_sql`].
    #[must_use]
    pub fn row_sql(&self, fields: &[Field], most: usize) -> String {
        let mut list = vec![self.instant(), self.id_sql(fields, Some(most))];
        list.extend(fields.iter().map(|field| self.value(field)));
        self.at_sql(&list.join(", "))
    }

    /// No row, but all columns.
    pub(super) fn columns_sql(&self) -> String {
        format!("SELECT t.* FROM {} AS t WHERE false", self.config.table.quoted())
    }

    pub(super) fn at_sql(&self, list: &str) -> String {
        let [_, id] = self.order();
        format!(
            "SELECT {list} FROM {} AS t WHERE {} AND {id} = $2::text::{}",
            self.config.table.quoted(),
            self.has_instant(1),
            self.id_type.sql(),
        )
    }
}

/// A field of the row `t`, as SQL; its columns are `all`, some of them `bytea` or of the database's `own` types; `table` is the oid of
/// what it is a row of.
pub(super) fn value<'a>(
    field: &'a Field,
    [bytea, own]: [&BTreeSet<String>; 2],
    all: impl Iterator<Item = &'a str>,
    table: u32,
) -> String {
    match field {
        Field::Row => "pg_catalog.row_to_json(t.*)::text".to_owned(),
        Field::Columns(columns) => {
            let list: Vec<_> = columns.iter().map(|column| format!("t.{}", quote_ident(column))).collect();
            format!("(SELECT pg_catalog.row_to_json(x.*)::text FROM (SELECT {}) AS x)", list.join(", "))
        }
        Field::Debezium(None) => debezium::object(all, table),
        Field::Debezium(Some(columns)) => debezium::object(columns.iter().map(String::as_str), table),
        Field::Payload(column) if bytea.contains(column) => format!("t.{}", quote_ident(column)),
        Field::Text(column) | Field::Payload(column) => {
            cast::text(&format!("t.{}", quote_ident(column)), own.contains(column))
        }
        Field::Matches => "true::text".to_owned(),
    }
}

/// Through what a partition or child is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within<'a> {
    /// By its own name, quoted.
    Itself(&'a str),
    /// Through the table: a role that may read the table need not be allowed to read each of its partitions.
    Table {
        /// Its oid.
        partition: u32,
        /// Its partition constraint, which prunes the others.
        constraint: Option<&'a str>,
    },
}

/// Which form the lower bound has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// No bound: before every row.
    Nothing,
    /// An instant: its rows are still to come.
    Instant,
    /// A row.
    Row,
}

impl After {
    /// The form that fits a position.
    #[must_use]
    pub fn of(position: Option<&Position>) -> Self {
        match position {
            None => Self::Nothing,
            Some(Position { id: None, .. }) => Self::Instant,
            Some(Position { id: Some(_), .. }) => Self::Row,
        }
    }
}
