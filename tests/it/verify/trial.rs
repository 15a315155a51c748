//! Another publisher on trial: without a relay, without the schema `outbox`.

use tokio_postgres::Client;

use super::{differences, put, verify};
use crate::support::naive_relay::{Fault, NaiveRelay};
use crate::support::{Database, Record, broker, database, toml, unique};

const TABLE: &str = "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz DEFAULT clock_timestamp()); \
                     CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; DROP SCHEMA outbox CASCADE";

/// A database with a table, and no schema `outbox`.
async fn plain() -> (Database, Client, String) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(TABLE).await.unwrap();
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), "");
    (database, owner, text)
}

fn record(id: &str) -> Record {
    let payload = Some(format!("{{\"after\":{{\"id\":{id}}}}}").into_bytes());
    Record {
        partition: 0,
        offset: 0,
        key: Some("k".to_owned()),
        payload,
        headers: vec![("id".to_owned(), id.to_owned())],
    }
}

// Guarantee: verify.trial
#[tokio::test(flavor = "multi_thread")]
async fn poller_that_loses_a_late_commit_is_convicted_by_id_and_a_sound_one_is_not() {
    let (database, owner, text) = plain().await;
    let mut faulty = NaiveRelay::new(database.connect("postgres").await, "bookings", Fault::WindowOnly);
    let mut sound = NaiveRelay::new(database.connect("postgres").await, "bookings", Fault::None);
    sound.turn().await;
    let mut slow = database.connect("postgres").await;
    let slow = slow.transaction().await.unwrap();
    slow.batch_execute("INSERT INTO bookings VALUES (1)").await.unwrap();
    owner.batch_execute("INSERT INTO bookings VALUES (2)").await.unwrap();
    faulty.turn_until_delivered(1).await;
    slow.commit().await.unwrap();
    owner.batch_execute("INSERT INTO bookings SELECT generate_series(3, 200)").await.unwrap();
    faulty.drain().await;
    sound.turn_until_delivered(200).await;
    for (relay, code, lost) in [(&faulty, 3, vec!["not_delivered 1"]), (&sound, 0, vec![])] {
        let topic = unique("trial");
        broker().await.create_topic(&topic, 1, &[]).await.unwrap();
        put(&topic, &relay.delivered().into_iter().map(record).collect::<Vec<_>>()).await;
        for place in ["header:id", "payload:$.after.id"] {
            let args = ["--table", "public.bookings", "--topic", &topic, "--id", place, "--grace", "100ms"];
            let (found, document, log) = verify(&text, &args).await;
            assert_eq!(found, Some(code), "{document}{log}");
            assert_eq!(differences(&document), lost);
            assert_eq!((&document["relay"], &document["rows"]["table"]), (&"public.bookings".into(), &200.into()));
        }
    }
}

// Guarantee: verify.trial
#[tokio::test(flavor = "multi_thread")]
async fn table_without_an_index_and_with_other_columns_is_compared() {
    let (_database, owner, text) = plain().await;
    let other = "CREATE TABLE public.events (event_id uuid, at timestamp DEFAULT (now() AT TIME ZONE 'UTC')); \
                 GRANT SELECT ON public.events TO relay; \
                 INSERT INTO events (event_id) SELECT gen_random_uuid() FROM generate_series(1, 20)";
    owner.batch_execute(other).await.unwrap();
    let rows = owner.query("SELECT upper(event_id::text) FROM events", &[]).await.unwrap();
    let topic = unique("trial");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let records: Vec<Record> = rows.iter().map(|row| Record { payload: None, ..record(row.get(0)) }).collect();
    put(&topic, &records[1..]).await;
    let args = ["--table", "public.events", "--topic", &topic, "--id", "header:id", "--grace", "10ms"];
    let (code, _, log) = verify(&text, &args).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("public.events has no column id") && log.contains("--id-column"), "{log}");
    let args = [&args[..], &["--id-column", "event_id", "--created-at-column", "at"]].concat();
    let (code, document, log) = verify(&text, &args).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), [format!("not_delivered {}", records[0].id().to_lowercase())]);
}
