//! The index over a shard's number: whether it is there, and the SQL that makes it.

use super::Shard;
use crate::database::{Error, Session};
use crate::source::Stream;
use crate::source::finding::{Finding, Level};
use crate::source::table::Table;

/// An index whose first column is an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardIndex {
    /// The relation that it is on.
    pub relation: String,
    /// Its name with its schema, quoted where needed.
    pub name: String,
    /// Its name alone.
    pub bare_name: String,
    /// It is complete, and used.
    pub valid: bool,
    /// It yields rows in the order of its first three columns.
    pub ordered: bool,
    /// Its first column, as the server prints it.
    pub expression: String,
    /// Its second and third column.
    pub columns: Vec<String>,
}

/// Reads the indexes over an expression that are on the relations which must have one, those included that are not valid.
///
/// # Errors
/// The database's.
pub async fn read(session: &Session, table: &Table) -> Result<Vec<ShardIndex>, Error> {
    let relations: Vec<u32> = table.relations_with_indexes();
    let rows = session.query(include_str!("../sql/shard_indexes.sql"), &[&relations]).await?;
    rows.iter()
        .map(|row| {
            Ok(ShardIndex {
                relation: row.try_get(0)?,
                name: row.try_get(1)?,
                bare_name: row.try_get(2)?,
                valid: row.try_get(3)?,
                ordered: row.try_get(4)?,
                expression: row.try_get(5)?,
                columns: row.try_get(6)?,
            })
        })
        .collect()
}

/// An index that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where.
    pub relation: String,
    /// A remainder of a build that failed, or one that somebody else is at: it has the name, and is not used.
    pub invalid: Option<String>,
    /// One statement each, in this order.
    pub statements: Vec<String>,
}

/// The indexes that a relay with this shard needs and that are not there.
#[must_use]
pub fn missing(table: &Table, indexes: &[ShardIndex], config: &Stream, shard: &Shard) -> Vec<Missing> {
    let pair = [config.created_at.as_str(), config.id.as_str()];
    let fits = |index: &&ShardIndex| {
        index.valid && index.ordered && index.columns == pair && shard.is_printed(&index.expression)
    };
    // A partitioned table's index cannot be built concurrently.
    let concurrently = table.kind != "p";
    let without =
        |relation: &&String| !indexes.iter().filter(|index| index.relation == **relation).any(|index| fits(&index));
    let relations: Vec<&String> = table.indexed.iter().filter(without).collect();
    let several = table.indexed.len() > 1;
    relations
        .into_iter()
        .map(|relation| {
            // Children by inheritance need one each, and names are the schema's.
            let of = if several { relation.rsplit('.').next().unwrap_or(relation) } else { &config.table.name };
            let name = shard.index_name(&of.replace('"', ""), config);
            let invalid = indexes
                .iter()
                .find(|index| index.relation == *relation && index.bare_name == name && !index.valid)
                .map(|index| index.name.clone());
            let drop = |name: &String| format!("DROP INDEX {}{name};", if concurrently { "CONCURRENTLY " } else { "" });
            let mut statements: Vec<String> = invalid.iter().map(drop).collect();
            statements.push(shard.index_sql(&name, relation, config, concurrently));
            Missing { relation: relation.clone(), invalid, statements }
        })
        .collect()
}

/// What is wrong with reading the table by shards.
#[must_use]
pub fn judge(table: &Table, indexes: &[ShardIndex], config: &Stream, shard: &Shard) -> Vec<Finding> {
    let Some(column) = table.column(&shard.key) else {
        let message = format!("{} has no column {}, by which its shards are told apart", config.table, shard.key);
        let finding = Finding::new(Level::Error, "shard_key_missing", message);
        return vec![finding.setting("Correct the sink's key, or [[relay]] shard_key.")];
    };
    if !Shard::accepts(&column.type_name) {
        let message = format!(
            "{}.{} is of type {}, whose text may differ from session to session: no index can hold its shard",
            config.table, column.name, column.type_name
        );
        let fix = "Take a column of type text, varchar, smallint, integer, bigint or uuid, or write shards = 1.";
        return vec![Finding::new(Level::Error, "shard_key_type", message).setting(fix)];
    }
    let mut findings = Vec::new();
    for missing in missing(table, indexes, config, shard) {
        let mut message = format!(
            "{} has no index for {} shards by {}: each of them would read the rows of all",
            missing.relation, shard.of, shard.key
        );
        if let Some(invalid) = &missing.invalid {
            message.push_str(&format!("; {invalid} is not valid: its build failed, or is still running"));
        }
        if table.kind == "p" {
            message.push_str("; on a partitioned table it cannot be built concurrently, and writers wait for it");
        }
        let finding = Finding::new(Level::Error, "shard_index_missing", message);
        findings.push(finding.sql(missing.statements.join("\n")));
    }
    findings
}
