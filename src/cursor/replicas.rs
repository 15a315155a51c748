//! Processes of `run` as rows of `outbox.replica`: what each relays, with which configuration, and which of them may.
//!
//! Of a relay that live replicas have with different configurations, those of one configuration have the claim; the others
//! wait. Claims are decided under one advisory lock, in the statement that writes the row, so that two replicas that start
//! at the same instant cannot both have it.

use serde::{Deserialize, Serialize};
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use super::liveness;
use crate::database::{Error, quote_literal};
use crate::position::Timestamp;

/// What comes before a replica's id in the names of its sessions.
pub const SESSION: &str = "outbox-relay/";
/// And of a replica that runs the user's SQL.
pub const SQL_SESSION: &str = "outbox-relay/sql:";

/// Held while claims are decided; an arbitrary number of our own.
const LOCK: i64 = 0x006f_7574_636c_6169;
/// The code of a relay that waits for replicas with another configuration of it.
pub const MISMATCH: &str = "config_mismatch";

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Names the process.
    pub instance: String,
    /// The replica's id.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When it last wrote its row, or was last known to live.
    pub seen_at: Timestamp,
    /// When it stopped, or was first found to have no session.
    pub stopped_at: Option<Timestamp>,
    /// One of its sessions is there, and it has not stopped.
    pub live: bool,
    /// Its relays, one for each cursor; none when they cannot be read.
    pub relays: Vec<Relay>,
    /// Why they cannot be read, as of another version.
    pub unreadable: Option<String>,
}

/// A relay of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// Its cursor's name.
    pub name: String,
    /// The digest of what decides what it delivers, and where.
    pub config_hash: String,
    /// Why the process does not run it, if it does not.
    pub refused: Option<RefusedRelay>,
}

/// Why a process does not run a relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRelay {
    /// A stable word.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

/// What a process wants its row to say of a relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WantedRelay {
    /// See [`Relay`].
    pub name: String,
    /// See [`Relay`].
    pub config_hash: String,
    /// Why its own checks keep the process from running it; it has no claim then.
    pub refused: Option<RefusedRelay>,
    /// Whether it waits while replicas with another configuration have the claim.
    pub waits: bool,
}

impl WantedRelay {
    /// Whether a row would say the same of them, as far as the process itself decides it.
    #[must_use]
    pub fn say_the_same(one: &[Self], other: &[Self]) -> bool {
        let said = |wanted: &Self| (wanted.name.clone(), wanted.config_hash.clone(), wanted.refused.clone());
        one.iter().map(said).eq(other.iter().map(said))
    }
}

/// The row of this process.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Names the process.
    pub instance: &'a str,
    /// The replica's id.
    pub id: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// When it started, as [`register`] has returned it; none at the first time.
    pub started_at: Option<&'a str>,
}

/// The relays as they are decided: refused by the process's own checks, or because another configuration has the claim. The
/// replica that has been there for longest is named.
fn decided(own: Own<'_>, wanted: &[WantedRelay]) -> String {
    let (instance, live) = (quote_literal(own.instance), liveness::is_live("r"));
    let wanted = quote_literal(&serde_json::json!(wanted).to_string());
    let relay = |of: &str| format!("pg_catalog.split_part({of}, '#', 1)");
    let (wanted_relay, others_relay) = (relay("w.name"), relay("t.entry ->> 'name'"));
    format!(
        "(WITH others AS MATERIALIZED (SELECT r.id, r.instance, r.started_at, {others_relay} AS relay, \
         COALESCE(t.entry ->> 'config_hash', 'not readable') AS config_hash \
         FROM outbox.replica AS r CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(r.relays) AS t (entry) \
         WHERE r.instance <> {instance}::uuid AND r.stopped_at IS NULL AND t.entry ->> 'refused' IS NULL AND {live}) \
         SELECT COALESCE(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', w.name, 'config_hash', w.config_hash, \
         'refused', COALESCE(w.refused, (SELECT pg_catalog.jsonb_build_object('code', '{MISMATCH}', 'message', \
         'waits for replica ' || o.id || ', which runs another configuration of relay ' || o.relay || ': ' || o.config_hash \
         || ' there, ' || w.config_hash || ' here') FROM others AS o WHERE w.waits AND o.relay = {wanted_relay} \
         AND o.config_hash <> w.config_hash ORDER BY o.started_at, o.instance LIMIT 1))) ORDER BY w.name), '[]') \
         FROM pg_catalog.jsonb_to_recordset({wanted}::jsonb) \
         AS w (name text, config_hash text, refused jsonb, waits boolean))"
    )
}

/// Writes the row of a process and takes what claims it can: when it started, as text, and its relays as they are decided.
///
/// The first time, rows of the same id whose processes have ended are marked as stopped: a process that restarts often has its id
/// again.
///
/// # Errors
/// The database's.
pub async fn register(client: &Client, own: Own<'_>, wanted: &[WantedRelay]) -> Result<(String, Vec<Relay>), Error> {
    let [instance, id, version] = [own.instance, own.id, own.version].map(quote_literal);
    let started = own.started_at.map_or_else(|| "NULL".to_owned(), quote_literal);
    let former = if own.started_at.is_some() {
        String::new()
    } else {
        format!(
            "UPDATE outbox.replica AS r SET stopped_at = pg_catalog.clock_timestamp() \
             WHERE r.id = {id} AND r.instance <> {instance}::uuid AND r.stopped_at IS NULL AND NOT {}; ",
            liveness::is_live("r")
        )
    };
    // One message, and so one transaction; the last statement's snapshot is newer than the lock.
    let sql = format!(
        "SELECT pg_catalog.pg_advisory_xact_lock({LOCK}); {former}\
         INSERT INTO outbox.replica (instance, id, version, started_at, relays) SELECT {instance}::uuid, {id}, {version}, \
         COALESCE({started}::timestamptz, pg_catalog.clock_timestamp()), {} \
         ON CONFLICT (instance) DO UPDATE SET seen_at = pg_catalog.clock_timestamp(), stopped_at = NULL, \
         relays = excluded.relays RETURNING started_at::text, relays::text",
        decided(own, wanted)
    );
    let [started_at, relays] = texts(client.simple_query(&sql).await?, ["started_at", "relays"])?;
    Ok((started_at, decision(&relays)?))
}

/// How claims would be decided now; changes nothing.
///
/// # Errors
/// The database's.
pub async fn decide(client: &Client, own: Own<'_>, wanted: &[WantedRelay]) -> Result<Vec<Relay>, Error> {
    let sql = format!("SELECT {}::text AS relays", decided(own, wanted));
    let [relays] = texts(client.simple_query(&sql).await?, ["relays"])?;
    decision(&relays)
}

/// The row with these columns, which is that of the last statement.
fn texts<const N: usize>(messages: Vec<SimpleQueryMessage>, columns: [&str; N]) -> Result<[String; N], Error> {
    let row = messages.into_iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let missing = || unusable("no row was returned".to_owned());
    let row = row.ok_or_else(missing)?;
    let text = |column| row.try_get(column).ok().flatten().map(str::to_owned);
    // Of an earlier statement's row the columns are others.
    let texts: Option<Vec<String>> = columns.into_iter().map(text).collect();
    texts.and_then(|texts| texts.try_into().ok()).ok_or_else(missing)
}

fn decision(relays: &str) -> Result<Vec<Relay>, Error> {
    serde_json::from_str(relays).map_err(|error| unusable(error.to_string()))
}

fn unusable(reason: String) -> Error {
    Error::Answer { table: "outbox.replica", reason }
}

/// The processes that have not stopped, or all that are known; the longest running first.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client, ended: bool) -> Result<Vec<Replica>, Error> {
    let sql = format!(
        "SELECT r.instance::text, r.id, r.version, r.started_at, \
         CASE WHEN l.live THEN pg_catalog.clock_timestamp() ELSE r.seen_at END, r.stopped_at, r.relays::text, l.live \
         FROM outbox.replica AS r CROSS JOIN LATERAL (SELECT r.stopped_at IS NULL AND {}) AS l (live) \
         WHERE $1 OR r.stopped_at IS NULL ORDER BY r.started_at, r.instance",
        liveness::is_live("r")
    );
    let rows = client.query(&sql, &[&ended]).await?;
    rows.iter().map(|row| replica(row).map_err(Error::from)).collect()
}

fn replica(row: &Row) -> Result<Replica, tokio_postgres::Error> {
    // Another version may write something else of a relay.
    let (relays, unreadable) = match serde_json::from_str(row.try_get(6)?) {
        Ok(relays) => (relays, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(Replica {
        instance: row.try_get(0)?,
        id: row.try_get(1)?,
        version: row.try_get(2)?,
        started_at: row.try_get(3)?,
        seen_at: row.try_get(4)?,
        stopped_at: row.try_get(5)?,
        relays,
        unreadable,
        live: row.try_get(7)?,
    })
}

/// Records that a process stops in order.
///
/// # Errors
/// The database's.
pub async fn stop(client: &Client, instance: &str) -> Result<(), Error> {
    let sql = format!(
        "UPDATE outbox.replica SET stopped_at = pg_catalog.clock_timestamp(), seen_at = pg_catalog.clock_timestamp() \
         WHERE instance = {}::uuid",
        quote_literal(instance)
    );
    Ok(client.batch_execute(&sql).await?)
}

/// Marks processes that have no session any more as stopped, unless one has come back meanwhile: `seen` is when their
/// sessions were last there, if that is known.
///
/// # Errors
/// The database's.
pub async fn mark(client: &Client, instances: &[&str], seen: Option<Timestamp>) -> Result<u64, Error> {
    let sql = format!(
        "UPDATE outbox.replica AS r SET stopped_at = pg_catalog.clock_timestamp(), seen_at = GREATEST(r.seen_at, $2) \
         WHERE r.instance::text = ANY ($1) AND r.stopped_at IS NULL AND NOT {}",
        liveness::is_live("r")
    );
    Ok(client.execute(&sql, &[&instances, &seen]).await?)
}

/// Deletes rows of processes that stopped more than a day ago, if there are any.
///
/// # Errors
/// The database's.
pub async fn forget(client: &Client) -> Result<u64, Error> {
    let old = "stopped_at < pg_catalog.clock_timestamp() - INTERVAL '1 day'";
    let row = client.query_one(&format!("SELECT EXISTS (SELECT FROM outbox.replica WHERE {old})"), &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    Ok(client.execute(&format!("DELETE FROM outbox.replica WHERE {old}"), &[]).await?)
}
