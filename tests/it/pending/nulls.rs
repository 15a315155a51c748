//! Marks and keys that may be NULL, and keys that may stand twice, although the table's own catalog says that they may not, or said so
//! when the relay began.

use tokio_postgres::Client;

use super::{PATIENCE, count, database, eventually};
use crate::support::outside::{finding, json};
use crate::support::receiver::Receiver;
use crate::support::{Database, Process, outbox_relay, toml};

const OPEN: &str = "SELECT count(*) FROM jobs WHERE sent IS NOT TRUE";

fn jobs(receiver: &Receiver) -> String {
    format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"\n\
         [relay.sink.http]\nurl = \"{}/jobs\"\n",
        receiver.url()
    )
}

async fn table(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE jobs (id bigint NOT NULL, due timestamptz NOT NULL DEFAULT now(), sent boolean NOT NULL DEFAULT false); \
             CREATE UNIQUE INDEX ON jobs (id); CREATE INDEX ON jobs (due, id) WHERE NOT sent; \
             GRANT SELECT, UPDATE (sent) ON jobs TO relay; INSERT INTO jobs VALUES (1)",
        )
        .await
        .unwrap();
    owner
}

/// Makes this column one of which the catalog says NOT NULL, and of which a row holds NULL: that of a child that has dropped it, and from
/// PostgreSQL 18 on, where a child may not, by a constraint that is not validated.
async fn null_below(owner: &Client, column: &str, row: &str) {
    let version: i32 =
        owner.query_one("SELECT current_setting('server_version_num')::integer", &[]).await.unwrap().get(0);
    let sql = if version < 180_000 {
        format!(
            "CREATE TABLE child () INHERITS (jobs); CREATE UNIQUE INDEX ON child (id); \
             ALTER TABLE child ALTER {column} DROP NOT NULL; INSERT INTO child VALUES ({row})"
        )
    } else {
        format!(
            "ALTER TABLE jobs ALTER {column} DROP NOT NULL; INSERT INTO jobs VALUES ({row}); \
             ALTER TABLE jobs ADD CONSTRAINT late NOT NULL {column} NOT VALID"
        )
    };
    owner.batch_execute(&sql).await.unwrap();
    let said = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'jobs'::regclass AND attname = $1 AND attnotnull";
    assert_eq!(owner.query_one(said, &[&column]).await.unwrap().get::<_, i64>(0), 1, "the table's own column says it");
}

// Guarantee: pending.nulls
#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_mark_is_null_is_sent_although_the_tables_column_says_not_null() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = table(&database).await;
    null_below(&owner, "sent", "2, now(), NULL").await;
    let text = toml(&database, "relay", None, &jobs(&receiver));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, receiver.accepted("jobs").len(), count(&owner, OPEN).await), (Some(0), 2, 0), "{log}");
}

// Guarantee: pending.nulls
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_be_null_is_refused_although_the_tables_column_says_not_null() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = table(&database).await;
    null_below(&owner, "id", "NULL, now(), false").await;
    let text = toml(&database, "relay", None, &jobs(&receiver));
    let (code, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "key_nullable").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()));
    assert!(found["fix_sql"].as_str().is_some_and(|sql| sql.contains("SET NOT NULL")), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_no_index_keeps_unique_across_tables_that_inherit_is_warned_of() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = table(&database).await;
    let text = toml(&database, "relay", None, &jobs(&receiver));
    let (_, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "key_unproven").is_none(), "{out}{log}");
    owner.batch_execute("CREATE TABLE child () INHERITS (jobs); CREATE UNIQUE INDEX ON child (id)").await.unwrap();
    let (_, out, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "key_unproven").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!(found["level"], "warn", "{found}");
}

// Guarantee: pending.nulls
#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_mark_is_null_is_sent_after_the_column_has_lost_its_not_null() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = table(&database).await;
    let text = toml(&database, "relay", None, &jobs(&receiver));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || receiver.accepted("jobs").len() == 1).await;
    owner
        .batch_execute("ALTER TABLE jobs ALTER sent DROP NOT NULL; INSERT INTO jobs VALUES (2, now(), NULL)")
        .await
        .unwrap();
    eventually(PATIENCE * 2, async || receiver.accepted("jobs").len() == 2 && count(&owner, OPEN).await == 0).await;
    assert!(!process.log().contains("\"ERROR\""), "{}", process.log());
}
