//! The tables that a connector reads.

use anyhow::{Context as _, bail, ensure};

use super::super::settings::Settings;

/// A relay is made of each. Outboxes are few.
const MOST: usize = 100;

/// The tables, `schema.table`, of a list of regular expressions that are plain names.
pub(super) fn tables(settings: &mut Settings) -> anyhow::Result<Vec<String>> {
    let list = settings.take("table.include.list").context(
        "table.include.list is missing: the relay reads a table by its name; which one is the outbox? Set it in the file, as schema.table",
    )?;
    let table = |item: &str| {
        let name = item.trim().replace("\\.", ".");
        let plain = name
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$'));
        match name.matches('.').count() {
            1 if plain => Ok(name),
            _ => bail!("table.include.list has {item:?}: write the name of a table, as schema.table"),
        }
    };
    let items: Vec<&str> = list.split(',').collect();
    let (found, most) = (items.len(), MOST);
    ensure!(
        found <= most,
        "table.include.list has {found} tables, and {most} can be translated: write fewer into each file"
    );
    items.into_iter().map(table).collect()
}
