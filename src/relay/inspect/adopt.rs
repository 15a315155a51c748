//! What a cursor belongs to, and what its relay finds now: the difference that an operator may accept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cursor::Adoption;
use crate::database::{Error, Session};
use crate::relay::Config;
use crate::relay::setup::prepare;
use crate::sink;
use crate::sink::kafka::{Cluster, describe_topic};
use crate::source::TableName;
use crate::source::shape::Shape;

/// The words of an identity, in the order in which they are shown.
const WORDS: [&str; 6] = ["table", "sink", "target", "system", "shards", "shard_key"];

/// What a cursor has known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it belongs to; none when nothing was written down yet.
    pub identity: Option<serde_json::Value>,
    /// The table's oid.
    pub root: Option<u32>,
    /// The oids of the table and its descendants.
    pub relations: BTreeSet<u32>,
    /// How many partitions its topic had.
    pub partitions: Option<i32>,
}

/// One fact that is another now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub what: &'static str,
    /// What the cursor has known.
    pub known: String,
    /// What the relay finds.
    pub found: String,
}

/// Reads what a cursor has known; none when there is no such cursor.
///
/// # Errors
/// The database's.
pub async fn known(session: &Session, name: &str) -> anyhow::Result<Option<Known>> {
    let sql = "SELECT identity::text, relations, partitions FROM outbox.cursor WHERE name = $1";
    let Some(row) = session.query_opt(sql, &[&name]).await? else { return Ok(None) };
    let identity: Option<String> = row.try_get(0)?;
    let relations: Vec<u32> = row.try_get::<_, Option<Vec<u32>>>(1)?.unwrap_or_default();
    Ok(Some(Known {
        identity: identity.map(|text| serde_json::from_str(&text)).transpose()?,
        root: relations.first().copied(),
        relations: relations.into_iter().skip(1).collect(),
        partitions: row.try_get(2)?,
    }))
}

/// The table of a cursor, as the cursor knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Its name now.
    pub table: TableName,
    /// Whether the cursor has a position in it.
    pub is_stream: bool,
    /// How many shards the relay has, and the column of their key.
    pub shards: Option<(u32, String)>,
}

/// The table that a cursor last read, or, before its first advance and where that table is dropped, the one that its relay named;
/// none when the cursor does not know its relay. The name says nothing of whether the table still exists.
///
/// # Errors
/// The database's.
pub async fn remembered(session: &Session, cursor: &str) -> Result<Option<Remembered>, Error> {
    // A name without a dot does not occur: the configuration demands the schema.
    let sql = "SELECT COALESCE(n.nspname::text, pg_catalog.split_part(c.identity ->> 'table', '.', 1)), \
               COALESCE(r.relname::text, pg_catalog.substr(c.identity ->> 'table', pg_catalog.strpos(c.identity ->> 'table', '.') + 1)), \
               c.identity ->> 'sink' NOT IN ('due work', 'requests'), \
               (c.identity ->> 'shards')::bigint, c.identity ->> 'shard_key' FROM outbox.cursor AS c \
               LEFT JOIN pg_catalog.pg_class AS r ON r.oid = c.relations[1] \
               LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace \
               WHERE c.name = $1 AND c.identity ->> 'table' IS NOT NULL";
    let Some(row) = session.query_opt(sql, &[&cursor]).await? else { return Ok(None) };
    let of: Option<i64> = row.try_get(3)?;
    let key: Option<String> = row.try_get(4)?;
    Ok(Some(Remembered {
        table: TableName { schema: row.try_get(0)?, name: row.try_get(1)? },
        is_stream: row.try_get(2)?,
        shards: of.and_then(|of| u32::try_from(of).ok()).zip(key),
    }))
}

/// What the relay finds now: its configuration, its table, its topic.
///
/// # Errors
/// When PostgreSQL or Kafka cannot be asked.
pub async fn found(
    session: &Session,
    cluster: Option<&Arc<Cluster>>,
    config: &Config,
    shape: &Shape,
    patience: Duration,
) -> anyhow::Result<Adoption> {
    let partitions = match (&config.sink, cluster) {
        (sink::Config::Kafka(kafka), Some(cluster)) if kafka.key.is_some() && !kafka.templated() => {
            let facts = describe_topic(cluster, &kafka.topic, patience)
                .await
                .map_err(|failure| anyhow::anyhow!("cannot ask Kafka about {}: {}", kafka.topic, failure.message))?;
            i32::try_from(facts.partitions).ok().filter(|_| facts.exists)
        }
        _ => None,
    };
    Ok(Adoption {
        number: 0,
        identity: serde_json::from_str(&prepare::identity(session, config).await?)?,
        root: shape.root,
        relations: shape.descendants.clone(),
        partitions,
    })
}

/// What differs. A fact that the cursor has not known yet does not.
///
/// # Errors
/// The database's: it names the relations.
pub async fn changes(session: &Session, known: &Known, found: &Adoption) -> Result<Vec<Change>, Error> {
    let mut changes = words(known.identity.as_ref(), &found.identity);
    if let Some(root) = known.root {
        if root != found.root {
            let (known, found) = (name(session, root).await?, name(session, found.root).await?);
            changes.push(Change { what: "relation", known, found });
        } else {
            for (what, oids) in [
                ("attached", found.relations.difference(&known.relations)),
                ("gone", known.relations.difference(&found.relations)),
            ] {
                for oid in oids {
                    let is = name(session, *oid).await?;
                    let (known, found) = if what == "gone" { (is, "-".to_owned()) } else { ("-".to_owned(), is) };
                    changes.push(Change { what: "partition", known, found });
                }
            }
        }
    }
    if let (Some(known), Some(found)) = (known.partitions, found.partitions)
        && known != found
    {
        changes.push(Change { what: "topic partitions", known: known.to_string(), found: found.to_string() });
    }
    Ok(changes)
}

/// The words of two identities that differ.
fn words(known: Option<&serde_json::Value>, found: &serde_json::Value) -> Vec<Change> {
    let Some(known) = known else { return Vec::new() };
    let text = |identity: &serde_json::Value, word: &str| {
        identity.get(word).and_then(serde_json::Value::as_str).unwrap_or("-").to_owned()
    };
    WORDS
        .into_iter()
        .filter(|word| known.get(word) != found.get(word))
        .map(|what| Change { what, known: text(known, what), found: text(found, what) })
        .collect()
}

/// What a configuration changes about a cursor, as a sentence; both identities as JSON.
#[must_use]
pub fn difference(cursor: &str, known: &str, found: &str) -> String {
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let (known, found) = (parsed(known), parsed(found));
    let topics = [&known, &found].iter().all(|identity| identity["sink"] == "kafka");
    let changes = words(Some(&known), &found).into_iter().map(|change| {
        let (what, absent) = match change.what {
            "target" if topics => ("topic", "none"),
            "system" => ("database system", "none"),
            "shards" => ("number of shards", "1"),
            "shard_key" => ("shard key", "none"),
            what => (what, "none"),
        };
        let value = |value: String| if value == "-" { absent.to_owned() } else { value };
        format!("{what} {} becomes {}", value(change.known), value(change.found))
    });
    let changes: Vec<String> = changes.collect();
    format!("this configuration changes what cursor {cursor} belongs to: {}", changes.join(", "))
}

async fn name(session: &Session, oid: u32) -> Result<String, Error> {
    let sql = "SELECT c.oid::regclass::text FROM pg_catalog.pg_class AS c WHERE c.oid = $1";
    let row = session.query_opt(sql, &[&oid]).await?;
    let name: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(name.map_or_else(|| format!("dropped (oid {oid})"), |name| format!("{name} (oid {oid})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_an_identity_that_differ_are_shown_and_an_unknown_one_differs_in_none() {
        let known = serde_json::json!({ "table": "a", "sink": "kafka", "target": "t", "system": "1" });
        let found = serde_json::json!({ "system": "1", "table": "b", "sink": "kafka", "target": "t" });
        let table = Change { what: "table", known: "a".to_owned(), found: "b".to_owned() };
        assert_eq!(words(Some(&known), &found), [table]);
        assert!(words(None, &found).is_empty());
    }

    #[test]
    fn difference_names_changes_in_words() {
        let known = r#"{"table": "a", "sink": "kafka", "target": "t", "system": "1"}"#;
        let found = r#"{"table": "b", "sink": "kafka", "target": "u", "system": "1", "shards": "4", "shard_key": "k"}"#;
        assert_eq!(
            difference("c", known, found),
            "this configuration changes what cursor c belongs to: table a becomes b, topic t becomes u, number of shards 1 \
             becomes 4, shard key none becomes k"
        );
        let http = r#"{"table": "a", "sink": "http", "target": "https://x", "system": "1"}"#;
        let said = difference("c", known, http);
        assert!(said.ends_with(": sink kafka becomes http, target t becomes https://x"), "{said}");
    }
}
