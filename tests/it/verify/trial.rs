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

// Guarantee: verify.trial
#[tokio::test(flavor = "multi_thread")]
async fn order_of_a_key_repeats_and_phantoms_are_judged_by_what_records_say() {
    let (_database, owner, text) = plain().await;
    owner.batch_execute("INSERT INTO bookings SELECT generate_series(1, 6)").await.unwrap();
    let rows = owner.query("SELECT id::text, created_at::text FROM bookings ORDER BY created_at", &[]).await.unwrap();
    let record = |row: usize, key: &str| {
        let (id, at): (String, String) = (rows[row].get(0), rows[row].get(1));
        let headers = vec![("at".to_owned(), at), ("from".to_owned(), "poller".to_owned())];
        let payload = Some(format!("{{\"id\":{id}}}").into_bytes());
        Record { partition: 0, offset: 0, key: Some(key.to_owned()), payload, headers }
    };
    let topic = unique("trial");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let phantom = Record { payload: Some(b"{\"id\":99}".to_vec()), ..record(5, "b") };
    let other = Record { headers: vec![("from".to_owned(), "another".to_owned())], ..record(0, "a") };
    let all = [(0, "a"), (2, "a"), (1, "a"), (4, "b"), (3, "a"), (5, "b"), (5, "b")].map(|(row, key)| record(row, key));
    put(&topic, &[&all[..], &[phantom, other]].concat()).await;
    let args = ["--table", "public.bookings", "--topic", &topic, "--id", "payload:$.id", "--created-at", "header:at"];
    // A wrong argument convicts no publisher.
    for (id, header) in [("header:id", "from=poller"), ("payload:$.id", "from=pollers")] {
        let args =
            ["--table", "public.bookings", "--topic", &topic, "--id", id, "--relay-header", header, "--grace", "1ms"];
        let (code, _, log) = verify(&text, &args).await;
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains(&format!("no record of topic {topic} has ")), "{log}");
    }
    let args = [&args[..], &["--relay-header", "from=poller", "--grace", "10ms"]].concat();
    let (code, document, log) = verify(&text, &args).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["out_of_order 2", "not_in_table 99", "twice 6"]);
}
