//! A real Debezium beside the relay, and on trial: `make test-incumbent`, outside of CI. What these tests measure is quoted in
//! docs/howto/moving-over.md.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "as in tests/it, of whose support little is used here"
)]

use outbox_testkit::postgres::{Options, Postgres, password};

use support::servers::prepare;
use support::{Database, broker};

#[path = "../it/support/mod.rs"]
mod support;

mod connect;
mod converted;
mod event;
mod preset;
mod trial;

/// A database of a server whose log can be decoded.
async fn logical() -> Database {
    let settings = vec![("wal_level".to_owned(), "logical".to_owned())];
    let postgres = Postgres::start(Options { settings, ..Options::default() }).await.unwrap();
    prepare(&postgres).await;
    Database { name: "template_outbox".to_owned(), postgres: Box::leak(Box::new(postgres)) }
}

/// A connector of Kafka Connect for `public.outboxevent`, as Debezium's documentation has it.
async fn connector(database: &Database, more: &str) -> String {
    let router = "transforms=outbox\ntransforms.outbox.type=io.debezium.transforms.outbox.EventRouter\n";
    connector_of(database, "public.outboxevent", &format!("{router}{more}")).await
}

/// The same for another table.
async fn connector_of(database: &Database, table: &str, more: &str) -> String {
    format!(
        "name=outbox\n\
         connector.class=io.debezium.connector.postgresql.PostgresConnector\n\
         tasks.max=1\n\
         database.hostname=127.0.0.1\n\
         database.port={}\n\
         database.user=postgres\n\
         database.password={}\n\
         database.dbname={}\n\
         database.sslmode=disable\n\
         topic.prefix=app\n\
         table.include.list={table}\n\
         plugin.name=pgoutput\n\
         publication.autocreate.mode=filtered\n\
         snapshot.mode=no_data\n\
         poll.interval.ms=50\n\
         producer.override.bootstrap.servers={}\n\
         {more}",
        database.postgres.port(),
        password("postgres"),
        database.name,
        broker().await.bootstrap_servers(),
    )
}
