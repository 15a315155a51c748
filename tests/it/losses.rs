//! Committed rows that were once lost: each case as it was found, on a real server, kept so that it stays closed.
//!
//! A case is a script of sessions around a relay that would pass a row without delivering it. Every test delivers all
//! rows, or ends in a halt that names the reason; none is silent.

mod detach;
mod keys;
mod messages;
mod prepared;
mod roles;
mod rule_change;
mod servers;
mod snapshot;
mod stamps;
mod switch;
mod turns;
mod words;
mod zones;

use tokio_postgres::Client;

use crate::support::Database;

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// A table `bookings` with the members `a` (ids below 100) and `b`: partitions, or tables that inherit.
pub async fn members(database: &Database, inherit: bool) -> Client {
    let owner = database.connect("postgres").await;
    let columns = "id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp()";
    let tables = if inherit {
        format!(
            "CREATE TABLE bookings ({columns}, PRIMARY KEY (created_at, id)); \
             CREATE TABLE a (PRIMARY KEY (created_at, id)) INHERITS (bookings); \
             CREATE TABLE b (PRIMARY KEY (created_at, id)) INHERITS (bookings)"
        )
    } else {
        format!(
            "CREATE TABLE bookings ({columns}, PRIMARY KEY (created_at, id)) PARTITION BY RANGE (id); \
             CREATE TABLE a PARTITION OF bookings FOR VALUES FROM (MINVALUE) TO (100); \
             CREATE TABLE b PARTITION OF bookings FOR VALUES FROM (100) TO (MAXVALUE)"
        )
    };
    run(&owner, &format!("{tables}; GRANT SELECT ON bookings, a, b TO relay, relay_stats")).await;
    owner
}
