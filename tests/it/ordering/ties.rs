//! Rows of one instant, ids of every type, and the row at the position.

use std::time::Duration;

use outbox_testkit::postgres::MAJOR;
use tokio_postgres::Client;

use crate::support::{CLOCK, Database, Reader, bookings, database, ordered};

const ROLES: [&str; 2] = ["relay", "relay_stats"];
/// Long past for every window.
const INSTANT: &str = "timestamptz '2026-01-01 12:00:00.123456+00'";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// Reads until a turn finds nothing; gives how many turns found something.
async fn drain(reader: &Reader) -> usize {
    let sighting = reader.scan().await;
    let mut turns = 0;
    while reader.read(&sighting).await.unwrap() > 0 {
        turns += 1;
    }
    turns
}

#[tokio::test]
async fn rows_of_one_instant_come_once_each_in_the_order_of_their_ids_whatever_a_turn_takes() {
    for (role, rows, turn) in [
        ("relay", 2_000, 1),
        ("relay_stats", 2_000, 2),
        ("relay", 7_000, 7),
        ("relay_stats", 100_000, 1_000),
        ("relay", 100_000, 1_000),
    ] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let fill = format!("INSERT INTO bookings (created_at) SELECT {INSTANT} FROM generate_series(1, {rows})");
        run(&owner, &fill).await;
        let reader = Reader::new(&database, role).await.rows(turn);
        assert_eq!(drain(&reader).await, rows / turn);
        let expected: Vec<String> = (1..=rows).map(|id| id.to_string()).collect();
        assert!(reader.delivered().await == expected, "{rows} rows, {turn} a turn");
    }
}

#[tokio::test]
async fn a_whole_relay_takes_rows_of_one_instant_once_each_in_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, &format!("INSERT INTO bookings (created_at) SELECT {INSTANT} FROM generate_series(1, 100000)")).await;
    let relay = "[[relay]]\nname = \"r\"\n[relay.turn]\nrows = 1000\n[relay.source.stream]\n\
                 table = \"public.bookings\"\n[relay.sink.stdout]\n";
    let toml = crate::support::toml(&database, "relay", None, relay);
    let (code, out, log) = crate::support::outbox_relay(&toml, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = out.lines().map(id).collect();
    assert!(ids == (1..=100_000).map(|id: u32| id.to_string()).collect::<Vec<_>>(), "{} rows", ids.len());
}

/// A table whose ids are of this type, with rows of two instants in disorder.
async fn with_ids(database: &Database, id: &str, created_at: &str, ids: &str) -> Client {
    let owner = database.connect("postgres").await;
    run(
        &owner,
        &format!(
            "CREATE TABLE bookings (id {id} NOT NULL, created_at {created_at}, PRIMARY KEY (created_at, id)); \
             GRANT SELECT ON bookings TO relay, relay_stats; \
             INSERT INTO bookings (id, created_at) SELECT id, {INSTANT} AT TIME ZONE 'UTC' \
             + interval '1 second' * (n % 2) FROM ({ids}) AS ids (id, n) ORDER BY md5(n::text)"
        ),
    )
    .await;
    owner
}

/// Collations that sort otherwise than by bytes. A server of a package may be built without ICU and then has fewer.
async fn collations() -> Vec<String> {
    let client = database().await.connect("relay").await;
    let names = "SELECT collname::text FROM pg_collation WHERE collname IN ('en-x-icu', 'de-x-icu', 'pg_unicode_fast', \
                 'C.utf8', 'POSIX') ORDER BY 1";
    let found: Vec<String> = client.query(names, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    println!("collations: {found:?}");
    let icu = found.iter().any(|name| name == "en-x-icu");
    assert!(icu || std::env::var_os(MAJOR).is_some(), "the distribution's PostgreSQL has ICU");
    found
}

#[tokio::test]
async fn ids_of_every_type_come_in_the_columns_own_order() {
    let numbers = "SELECT n - 20, n FROM generate_series(0, 40) AS n";
    let uuids = "SELECT md5(n::text)::uuid, n FROM generate_series(0, 40) AS n";
    let texts = "SELECT text, row_number() OVER () FROM unnest(ARRAY['', ' ', 'a', 'A', 'b', 'B', 'ä', 'z', 'Z', '_a', '-a', \
                 'a b', 'a''b', 'a\"b', 'a\\b', '10', '9', '%', 'É', 'e', 'ß', 'ss', '日本']) AS text";
    let mut types: Vec<(String, &str)> =
        ["smallint", "integer", "bigint"].map(|number| (number.to_owned(), numbers)).to_vec();
    types.extend([("uuid".to_owned(), uuids), ("text COLLATE \"C\"".to_owned(), texts)]);
    for collation in collations().await {
        types.extend(["text", "varchar(40)"].map(|text| (format!("{text} COLLATE \"{collation}\""), texts)));
    }
    for (role, (id, ids)) in ROLES.into_iter().flat_map(|role| types.iter().map(move |one| (role, one))) {
        let database = database().await;
        let owner = with_ids(&database, id, "timestamptz NOT NULL DEFAULT clock_timestamp()", ids).await;
        let reader = Reader::new(&database, role).await.rows(1);
        drain(&reader).await;
        let expected = ordered(&owner, "bookings").await;
        assert!(expected.len() > 20);
        assert_eq!(reader.delivered().await, expected, "{id}");
    }
}

#[tokio::test]
async fn a_timestamp_without_zone_is_read_in_the_zone_stated() {
    for role in ROLES {
        for (zone, offset) in [("UTC", 0), ("Etc/GMT-5", 5)] {
            let database = database().await;
            let default = format!("timestamp NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE '{zone}')");
            let ids = "SELECT n, n FROM generate_series(1, 20) AS n";
            let owner = with_ids(&database, "bigint", &default, ids).await;
            let source = format!("table = \"public.bookings\"\ntime_zone = \"{zone}\"");
            let reader = Reader::of(&database, role, &source).await.rows(3);
            assert_eq!(reader.shape.lock().await.rule, outbox_relay::source::Rule::Writers);
            drain(&reader).await;
            let last = reader.position().await.unwrap().created_at;
            let written: outbox_relay::position::Timestamp =
                owner.query_one(&format!("SELECT {INSTANT} + interval '1 second'"), &[]).await.unwrap().get(0);
            // Written as UTC and read as five hours east of it: five hours earlier.
            assert_eq!(last.plus(Duration::from_secs(3600 * offset)), written);
            // Other sessions' zones make no difference to what a writer stamps.
            run(&owner, "SET TimeZone = 'America/New_York'").await;
            let writer = database.connect("postgres").await;
            run(&writer, "SET TimeZone = 'Asia/Tokyo'; BEGIN; INSERT INTO bookings (id) VALUES (100)").await;
            run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
            let before = reader.delivered().await;
            reader.settled(&before).await;
            run(&writer, "COMMIT").await;
            let expected = ordered(&owner, "bookings").await;
            assert_eq!(expected[20..], ["100", "101"]);
            reader.expect(&expected).await;
        }
    }
}

#[tokio::test]
async fn the_row_at_the_position_may_be_deleted_or_updated() {
    for (role, change) in ROLES.into_iter().flat_map(|role| {
        ["DELETE FROM bookings WHERE id", "UPDATE bookings SET payload = 'changed' WHERE id"]
            .map(|change| (role, change))
    }) {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, &format!("INSERT INTO bookings (created_at) SELECT {INSTANT} FROM generate_series(1, 20)")).await;
        let reader = Reader::new(&database, role).await.rows(5);
        let sighting = reader.scan().await;
        for at in [5, 10, 15] {
            reader.read(&sighting).await.unwrap();
            assert_eq!(reader.position().await.unwrap().id, Some(at.to_string()));
            run(&owner, &format!("{change} IN ({at}, {at} - 2)")).await;
        }
        drain(&reader).await;
        reader.settled(&(1..=20).collect::<Vec<_>>()).await;
        run(&owner, &format!("{change} > 0")).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        reader.expect(&(1..=21).collect::<Vec<_>>()).await;
    }
}
