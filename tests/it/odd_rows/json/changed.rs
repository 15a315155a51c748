//! The JSON of rows of a table that is changed.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::{Payload, forbid, payloads, relay, table};
use crate::odd_rows::{holds, replica, topic};
use crate::support::records::count;
use crate::support::{broker, database};

// Guarantee: delivery.changed-table
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_table_shows_in_the_json_of_the_first_row_behind_the_change() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    table(&owner, &[("payload", "text")]).await;
    let topic = topic("changed", &[]).await;
    let servers = broker().await.bootstrap_servers();
    let replica = replica(&database, &relay(&topic, &Payload::Row)).await;
    let mut known = Vec::new();
    for change in [
        "SELECT",
        "ALTER TABLE odd ADD COLUMN extra integer DEFAULT 7",
        "ALTER TABLE odd ALTER COLUMN extra TYPE text",
        "ALTER TABLE odd RENAME COLUMN extra TO more",
        // Only PostgreSQL makes JSON of this type.
        "ALTER TABLE odd ADD COLUMN list text[] DEFAULT '{a,NULL}'",
        "ALTER TABLE odd DROP COLUMN list",
        "ALTER TABLE odd DROP COLUMN more, ADD COLUMN more uuid DEFAULT '01890a5d-ac96-774b-bcce-b302099a8057'",
    ] {
        owner.batch_execute(change).await.unwrap();
        for _ in 0..2 {
            let sql = "INSERT INTO odd (payload) VALUES ('x') RETURNING pg_catalog.row_to_json(odd)::text";
            known.push(owner.query_one(sql, &[]).await.unwrap().get::<_, String>(0));
        }
        // What was inserted before a change and is read behind it has the columns behind it.
        holds(&servers, &topic, i64::try_from(known.len()).unwrap()).await;
    }
    assert_eq!(payloads(&servers, &topic).await, known);
    drop(replica);
}

// Guarantee: delivery.changed-table
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_changed_while_it_is_written_loses_no_row_and_no_column() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    table(&owner, &[("payload", "text")]).await;
    forbid(&owner).await;
    let topic = topic("changing", &[]).await;
    let servers = broker().await.bootstrap_servers();
    let replica = replica(&database, &relay(&topic, &Payload::Row)).await;
    let writer = database.connect("postgres").await;
    let insert =
        "INSERT INTO odd (payload) SELECT 'x' FROM generate_series(1, 20) RETURNING pg_catalog.row_to_json(odd)::text";
    let first = writer.query(insert, &[]).await.unwrap().len();
    holds(&servers, &topic, i64::try_from(first).unwrap()).await;
    let over = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let mut written: Vec<String> = Vec::new();
            while !over.load(Relaxed) {
                written.extend(writer.query(insert, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
            }
            written
        }
    });
    for change in 0..20 {
        let so_far = count(&servers, &topic).await.unwrap();
        owner
            .batch_execute(&format!("ALTER TABLE odd ADD COLUMN more{change} integer DEFAULT {change}"))
            .await
            .unwrap();
        // The relay goes on behind the change, and has something to read when the next one comes.
        holds(&servers, &topic, so_far + 1_000).await;
    }
    over.store(true, Relaxed);
    let written = writing.await.unwrap();
    holds(&servers, &topic, i64::try_from(first + written.len()).unwrap()).await;
    let came = payloads(&servers, &topic).await.split_off(first);
    assert_eq!(came.len(), written.len());
    let mut behind = 0;
    for (came, written) in came.iter().zip(&written).filter(|(came, written)| came != written) {
        // It has the columns, too, that were added between its insertion and its reading.
        let mut known = written.strip_suffix('}').unwrap().to_owned();
        for added in written.matches("\"more").count()..came.matches("\"more").count() {
            let _ = write!(known, ",\"more{added}\":{added}");
        }
        assert_eq!(*came, known + "}");
        behind += 1;
    }
    assert!(behind > 0, "{} rows, and no change between a row's insertion and its reading", came.len());
    drop(replica);
}
