//! Where a new cursor begins, and relays of one table beside each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::Client;

use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

const INSTANT: &str = "2026-01-01T12:00:00Z";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

fn relay(name: &str, start: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\nstart = \"{start}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
         [relay.sink.stdout]\n"
    )
}

/// The ids that a relay has printed, in order.
fn printed(process: &Process, relay: &str) -> Vec<i64> {
    let out = process.out();
    let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|line| line["relay"] == relay).map(|line| line["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_cursor_begins_before_every_row_or_at_an_instant_with_the_rows_of_that_instant() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        for offset in [-1, 0, 0, 1] {
            let sql = format!(
                "INSERT INTO bookings (created_at) VALUES (timestamptz '{INSTANT}' + interval '1 microsecond' * {offset})"
            );
            run(&owner, &sql).await;
        }
        let relays = relay("all", "beginning") + &relay("instant", INSTANT);
        let process = Process::spawn(&toml(&database, role, None, &relays), &["run"]);
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        eventually(PATIENCE, || async {
            printed(&process, "all").len() >= 5 && printed(&process, "instant").len() >= 4
        })
        .await;
        assert_eq!(printed(&process, "all"), [1, 2, 3, 4, 5]);
        assert_eq!(printed(&process, "instant"), [2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn a_cursor_that_begins_now_under_load_takes_every_row_from_its_position_on_and_none_before() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, "INSERT INTO bookings (created_at) SELECT now() - interval '1 day' FROM generate_series(1, 100)")
            .await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = Vec::new();
        for _ in 0..4 {
            let (writer, stop) = (database.connect("app").await, Arc::clone(&stop));
            writers.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let insert = "INSERT INTO bookings DEFAULT VALUES;";
                    run(&writer, &format!("BEGIN; {insert} SELECT pg_sleep(0.01); {insert} COMMIT")).await;
                }
            }));
        }
        let process = Process::spawn(&toml(&database, role, None, &relay("now", "now")), &["run"]);
        eventually(PATIENCE * 2, || async { printed(&process, "now").len() > 100 }).await;
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        let log = process.log();
        let line = log.lines().find(|line| line.contains("cursor created")).unwrap();
        let created: serde_json::Value = serde_json::from_str(line).unwrap();
        let position = created["position"].as_str().unwrap();
        let from = position.strip_prefix('(').unwrap().split(',').next().unwrap();
        let sql = format!("SELECT id FROM bookings WHERE created_at >= '{from}' ORDER BY created_at, id");
        let expected: Vec<i64> = owner.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let all: i64 = owner.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0);
        assert!(i64::try_from(expected.len()).unwrap() < all);
        eventually(PATIENCE, || async { printed(&process, "now").len() >= expected.len() }).await;
        assert_eq!(printed(&process, "now"), expected);
    }
}

#[tokio::test]
async fn two_relays_of_one_table_are_independent_and_a_halted_one_does_not_delay_the_other() {
    for role in ["relay", "relay_stats"] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(
            &owner,
            "INSERT INTO outbox.cursor (name, relay, identity) VALUES ('foreign', 'foreign', '{\"table\": \"x\"}')",
        )
        .await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        let relays = relay("one", "beginning") + &relay("two", "beginning") + &relay("foreign", "beginning");
        let process = Process::spawn(&toml(&database, role, None, &relays), &["run"]);
        let halted = "SELECT count(*) = 1 FROM outbox.cursor_status WHERE halted AND cursor = 'foreign'";
        eventually(PATIENCE, || async { owner.query_one(halted, &[]).await.unwrap().get(0) }).await;
        run(&owner, "INSERT INTO outbox.control (cursor, paused) VALUES ('two', true)").await;
        // The pause is read by the turn under its lock: from here on no turn of `two` begins.
        let ended = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() \
                     AND application_name LIKE 'outbox-relay/%' AND state LIKE 'idle in transaction%'";
        eventually(PATIENCE, || async { owner.query_one(ended, &[]).await.unwrap().get(0) }).await;
        for expected in 2..=5 {
            run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
            eventually(PATIENCE, || async { printed(&process, "one").len() == expected }).await;
        }
        assert_eq!(printed(&process, "one"), [1, 2, 3, 4, 5]);
        assert!(printed(&process, "two").len() <= 1);
        assert!(printed(&process, "foreign").is_empty());
        run(&owner, "UPDATE outbox.control SET paused = false").await;
        eventually(PATIENCE, || async { printed(&process, "two").len() >= 5 }).await;
        assert_eq!(printed(&process, "two"), [1, 2, 3, 4, 5]);
        assert_eq!(printed(&process, "one").len(), 5);
    }
}
