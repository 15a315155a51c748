//! Text ids in the order of a library, of which the server has another version now.

use outbox_relay::migrate;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, stdout_relay};
use crate::support::servers::postgres;
use crate::support::{Database, database, outbox_relay, toml};

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// `public.bookings` with an id of this type.
async fn bookings(owner: &Client, id: &str) {
    let table = format!(
        "CREATE TABLE public.bookings (id {id} PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
         CREATE INDEX ON public.bookings (created_at, id); GRANT SELECT ON public.bookings TO relay"
    );
    run(owner, &table).await;
}

/// The message and the SQL that `check` prints for it.
async fn found(database: &Database) -> Option<(String, String)> {
    let (_, out, log) =
        outbox_relay(&toml(database, "relay", None, &stdout_relay("s", "")), &["check", "-o", "json"]).await;
    let document = json(&out);
    assert!(finding(&document, "table").is_some(), "{out}{log}");
    let found = finding(&document, "collation_version")?;
    assert_eq!(found["level"], "warn");
    Some((found["message"].as_str().unwrap().to_owned(), found["fix_sql"].as_str().unwrap().to_owned()))
}

// Guarantee: horizon.collation-version
#[tokio::test]
async fn another_version_of_the_collation_of_text_ids_is_warned_of_until_it_is_refreshed() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(&owner, "CREATE COLLATION public.\"Odd\" (provider = icu, locale = 'de')").await;
    bookings(&owner, "text COLLATE public.\"Odd\"").await;
    assert_eq!(found(&database).await, None);
    run(&owner, "UPDATE pg_collation SET collversion = '1.2' WHERE collname = 'Odd'").await;
    let (message, sql) = found(&database).await.expect("another version");
    assert!(message.contains("collation public.\"Odd\"") && message.contains("version 1.2 "), "{message}");
    for statement in sql.split_inclusive(';') {
        run(&owner, statement).await;
    }
    assert_eq!(found(&database).await, None);
}

// Guarantee: horizon.collation-version
#[tokio::test]
async fn another_version_of_the_databases_default_collation_is_warned_of_for_text_ids_alone() {
    let database = Database { name: "test_collations".to_owned(), postgres: postgres().await };
    let server = database.postgres.connect("postgres", "postgres").await.unwrap();
    run(
        &server,
        "CREATE DATABASE test_collations TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de'",
    )
    .await;
    let mut owner = database.connect("postgres").await;
    migrate::up(&mut owner).await.unwrap();
    migrate::grant(&owner, &migrate::relay_grants("relay", &[])).await.unwrap();
    bookings(&owner, "text").await;
    assert_eq!(found(&database).await, None);
    run(&server, "UPDATE pg_database SET datcollversion = '1.2' WHERE datname = 'test_collations'").await;
    let (message, sql) = found(&database).await.expect("another version");
    assert!(message.contains("the default collation of database test_collations"), "{message}");
    run(&owner, "DROP TABLE public.bookings").await;
    bookings(&owner, "bigint").await;
    assert_eq!(found(&database).await, None, "numbers have no collation");
    run(&owner, "DROP TABLE public.bookings").await;
    bookings(&owner, "text").await;
    for statement in sql.split_inclusive(';') {
        run(&owner, statement).await;
    }
    assert_eq!(found(&database).await, None);
}
