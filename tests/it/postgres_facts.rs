//! The facts about PostgreSQL that the proof of "no row is lost" rests on, each checked on the real server.
//!
//! A fact that fails on a new major version breaks the proof, not only a test: see docs/ARCHITECTURE.md.
//! Sessions are held at lock waits until the server shows them there; where no wait can hold one, a fact is checked over
//! many rounds, and each round can fail.

mod activity;
mod clock;
mod commit;
mod defaults;
mod detach;
mod keys;
mod locks;
mod messages;
mod partitions;
mod prepared;
mod rewrites;
mod rights;
mod snapshots;
mod triggers;

use tokio::task::JoinHandle;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{Database, PATIENCE, database, eventually};

/// A database with a table `public.t` of these columns, which all roles may read and write.
async fn table(columns: &str) -> (Database, Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(&owner, &format!("CREATE TABLE t ({columns}); GRANT ALL ON t TO PUBLIC")).await;
    (database, owner)
}

/// Runs statements as one message of the simple protocol.
#[track_caller]
fn run(client: &Client, sql: &str) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move { client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{caller}: {sql}: {error:?}")) }
}

/// The only value of a query by the extended protocol.
#[track_caller]
fn value<T: FromSqlOwned>(client: &Client, sql: &str) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let row = client.query_one(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{caller}: {sql}: {error:?}")).get(0)
    }
}

/// Runs statements in the background, as one message of the simple protocol; gives the session back and the first
/// column of each row.
fn background(client: Client, sql: impl Into<String>) -> JoinHandle<(Client, Vec<String>)> {
    let sql = sql.into();
    tokio::spawn(async move {
        let messages = client.simple_query(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        (client, texts(&messages))
    })
}

/// The first column of each row.
fn texts(messages: &[SimpleQueryMessage]) -> Vec<String> {
    let first = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    };
    messages.iter().filter_map(first).collect()
}

async fn pid(client: &Client) -> i32 {
    value(client, "SELECT pg_backend_pid()").await
}

/// Returns when the server shows that `waiter` waits for one of `holders`.
#[track_caller]
fn waits_for(observer: &Client, waiter: i32, holders: &[i32]) -> impl Future<Output = ()> {
    let waits = "SELECT $2::integer[] && pg_blocking_pids($1)";
    eventually(PATIENCE, async move || observer.query_one(waits, &[&waiter, &holders]).await.unwrap().get(0))
}

/// The major version of the server.
async fn major(client: &Client) -> i32 {
    value::<i32>(client, "SELECT current_setting('server_version_num')::integer").await / 10_000
}
