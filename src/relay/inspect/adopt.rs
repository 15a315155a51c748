//! What a cursor belongs to, and what its relay finds now: the difference that an operator may accept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cursor::Adoption;
use crate::database::{Error, Session};
use crate::relay::Config;
use crate::relay::engine::identity::{Change, words};
use crate::relay::setup::prepare;
use crate::sink;
use crate::sink::kafka::{Cluster, describe_topic};
use crate::source::TableName;
use crate::source::shape::Shape;

/// What a cursor has known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCursor {
    /// What it belongs to; none when nothing was written down yet.
    pub identity: Option<serde_json::Value>,
    /// The table's oid.
    pub root: Option<u32>,
    /// The oids of the table and its descendants.
    pub relations: BTreeSet<u32>,
    /// How many partitions its topic had.
    pub partitions: Option<i32>,
}

/// Reads what a cursor has known; none when there is no such cursor.
///
/// # Errors
/// The database's.
pub async fn known(session: &Session, name: &str) -> anyhow::Result<Option<KnownCursor>> {
    let sql = "SELECT identity::text, relations, partitions FROM outbox.cursor WHERE name = $1";
    let Some(row) = session.query_opt(sql, &[&name]).await? else { return Ok(None) };
    let identity: Option<String> = row.try_get(0)?;
    let relations: Vec<u32> = row.try_get::<_, Option<Vec<u32>>>(1)?.unwrap_or_default();
    Ok(Some(KnownCursor {
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
    let sql = include_str!("sql/adopt_remembered.sql");
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
    let partitions = match &config.sink {
        sink::Config::Kafka(kafka) => match cluster.filter(|_| kafka.key.is_some() && !kafka.templated()) {
            Some(cluster) => partitions(cluster, &kafka.topic, patience).await?,
            None => None,
        },
        sink::Config::Http(_)
        | sink::Config::Sms(_)
        | sink::Config::Webhook(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => None,
    };
    Ok(Adoption {
        number: 0,
        identity: serde_json::from_str(&prepare::identity(session, config).await?)?,
        root: shape.root,
        relations: shape.descendants.clone(),
        partitions,
    })
}

/// Over how many partitions a topic spreads keys; none where there is no such topic.
async fn partitions(cluster: &Arc<Cluster>, topic: &str, patience: Duration) -> anyhow::Result<Option<i32>> {
    let facts = describe_topic(cluster, topic, patience)
        .await
        .map_err(|failure| anyhow::anyhow!("cannot ask Kafka about {topic}: {}", failure.message))?;
    Ok(i32::try_from(facts.partitions).ok().filter(|_| facts.exists))
}

/// What differs. A fact that the cursor has not known yet does not.
///
/// # Errors
/// The database's: it names the relations.
pub async fn changes(session: &Session, known: &KnownCursor, found: &Adoption) -> Result<Vec<Change>, Error> {
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

async fn name(session: &Session, oid: u32) -> Result<String, Error> {
    let sql = "SELECT c.oid::regclass::text FROM pg_catalog.pg_class AS c WHERE c.oid = $1";
    let row = session.query_opt(sql, &[&oid]).await?;
    let name: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(name.map_or_else(|| format!("dropped (oid {oid})"), |name| format!("{name} (oid {oid})")))
}
