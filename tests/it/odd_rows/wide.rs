//! As many columns as PostgreSQL allows.

use super::json::{Payload, compare};
use crate::support::database;

const COLUMNS: usize = 1600;

// Guarantee: delivery.json
#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_1600_columns_arrives_as_the_json_that_postgresql_makes_of_it() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let names: Vec<String> = (3..=COLUMNS).map(|n| format!("column_{n}")).collect();
    let list = names.join(", ");
    // A default each: PostgreSQL can take a minute to print them all.
    let definitions = names.iter().map(|name| format!("{name} integer DEFAULT 7")).collect::<Vec<_>>().join(", ");
    let values = |row: usize| {
        let value = |n: usize| if (n + row).is_multiple_of(3) { "NULL".to_owned() } else { (n * row).to_string() };
        (3..=COLUMNS).map(value).collect::<Vec<_>>().join(", ")
    };
    owner
        .batch_execute(&format!(
            "CREATE TABLE odd (id integer PRIMARY KEY, created_at timestamptz NOT NULL, {definitions}); \
             CREATE INDEX ON odd (created_at, id); GRANT SELECT ON odd TO relay; \
             INSERT INTO odd (id, created_at, {list}) VALUES (1, clock_timestamp(), {}), (2, clock_timestamp(), {}), \
             (3, clock_timestamp(), {})",
            values(1),
            values(2),
            values(3),
        ))
        .await
        .unwrap();
    let columns: Vec<String> = ["id".to_owned(), "created_at".to_owned()].into_iter().chain(names).collect();
    compare(&database, 3, &[Payload::Row, Payload::Columns(columns)]).await;
}
