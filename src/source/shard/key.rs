//! Whether the key that shards are told apart by can change.
//!
//! A row belongs to the shard of its key. A row whose key is updated moves to another shard: before that shard's position,
//! where it is lost, or after it, where it is sent again.

use std::collections::BTreeSet;

use super::Shard;
use crate::database::{Error, Session};
use crate::source::Stream;
use crate::source::finding::{Finding, Level};
use crate::source::guard::{self, Guard, WantedTrigger};
use crate::source::table::{self, Table};

/// The key in one relation that rows can be updated in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The relation, and whether the refusing trigger has the last word in it.
    pub guard: Guard,
    /// It is computed from other columns, after all triggers.
    pub generated: bool,
    /// The relation's owner, who may update everything.
    pub owner: String,
    /// Roles other than owner and superusers that may update the key.
    pub writers: Vec<String>,
}

/// Reads the key in each relation of the table's family.
///
/// # Errors
/// The database's.
pub async fn read(session: &Session, table: &Table, shard: &Shard) -> Result<Vec<Key>, Error> {
    let rows = session.query(include_str!("../sql/shard_key.sql"), &[&table.family(), &shard.key]).await?;
    rows.iter()
        .map(|row| {
            Ok(Key {
                guard: table::guard(row)?,
                generated: row.try_get(9)?,
                owner: row.try_get(10)?,
                writers: row.try_get(11)?,
            })
        })
        .collect()
}

/// Warns where a key can be updated, with the trigger that refuses it.
#[must_use]
pub fn judge(keys: &[Key], config: &Stream, shard: &Shard) -> Option<Finding> {
    let open: Vec<&Key> = keys.iter().filter(|key| key.generated || !key.guard.holds()).collect();
    if open.is_empty() {
        return None;
    }
    let owners: BTreeSet<&str> = open.iter().map(|key| key.owner.as_str()).collect();
    let roles = open.iter().flat_map(|key| &key.writers).map(String::as_str);
    let roles: BTreeSet<&str> = roles.filter(|role| !owners.contains(role)).collect();
    let who = [named("owner", &owners), named("role", &roles)].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let message = format!(
        "{who} may update {}.{}, by which shards are told apart: such a row is lost, or sent twice under every guarantee",
        config.table, shard.key
    );
    let finding = Finding::new(Level::Warn, "shard_key_updatable", message);
    if keys.iter().any(|key| key.generated) {
        return Some(
            finding.setting("Take a shard_key that is not generated: no trigger sees a generated value change."),
        );
    }
    let call = format!("outbox.refuse_key_update{}", guard::argument(&shard.key));
    let wanted = WantedTrigger { name: "refuse_key_update", events: "UPDATE", column: &shard.key, call: &call };
    let guards: Vec<&Guard> = keys.iter().map(|key| &key.guard).collect();
    Some(match guard::closing(&guards, &wanted) {
        Some(sql) => finding.sql(sql),
        None => finding.setting("Rename the triggers that run before an update, so that refuse_key_update is last."),
    })
}

/// One name after its kind, several after its plural.
fn named(kind: &str, names: &BTreeSet<&str>) -> Option<String> {
    let list = names.iter().copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => None,
        1 => Some(format!("{kind} {list}")),
        _ => Some(format!("{kind}s {list}")),
    }
}
