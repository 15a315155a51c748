//! The circuit of an HTTP receiver, under two replicas and two cursors.

use std::time::{Duration, SystemTime};

use tokio_postgres::Client;

use super::{all_circuits, circuit, gauges, logged, numbers, others_go_on, why_says_open};
use crate::support::outside::{halted, line, listener, standing};
use crate::support::receiver::{Receiver, Request};
use crate::support::{
    CLOCK, PATIENCE, Process, Replica, bookings, broker, config, database, eventually, ids, kafka_relay, toml, unique,
};

const CURSORS: [&str; 2] = ["a", "b"];

async fn insert(owner: &Client, rows: i32) {
    let sql = "INSERT INTO bookings (payload) SELECT 'p' || n FROM generate_series(1, $1) AS n";
    owner.execute(sql, &[&rows]).await.unwrap();
}

async fn opened_at(owner: &Client, cursor: &str) -> SystemTime {
    let sql = "SELECT circuit_opened_at FROM outbox.cursor_status WHERE cursor = $1";
    owner.query_one(sql, &[&cursor]).await.unwrap().get(0)
}

async fn letters(owner: &Client) -> i64 {
    owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap().get(0)
}

/// What the receiver saw while it was out: not opened before the third failure of a cursor, and from then on its first
/// row only, never two requests at a time.
fn rare_and_alone(requests: &[Request], cursor: &str, row: &str, opened_at: SystemTime) {
    let key = format!("{cursor}/{row}");
    let failed: Vec<_> = requests.iter().filter(|request| request.key == key && request.status == 503).collect();
    let before = failed.iter().filter(|request| request.at < opened_at).count();
    assert!((3..=7).contains(&before), "{cursor}: {before} failures before the circuit opened");
    // A request may have left before both replicas could see the open circuit.
    let settled = opened_at + Duration::from_secs(1);
    let probes: Vec<_> = failed.iter().filter(|request| request.at > settled).collect();
    let together = probes.iter().filter(|request| request.at_once > 1).count();
    let shortest = probes.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).unwrap()).min();
    println!("{cursor}: {before} failures before, {} probes after, shortest pause {shortest:?}", probes.len());
    assert_eq!(together, 0, "{cursor}: one probe at a time, whoever makes it");
    assert!(probes.len() >= 3 && shortest >= Some(Duration::from_millis(400)), "{cursor}: {shortest:?}");
}

// Guarantee: failures.circuit
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_out_is_tried_by_one_relay_with_one_row_until_it_is_back() {
    let (database, broker, topic) = (database().await, broker().await, unique("beside"));
    let owner = bookings(&database, CLOCK).await;
    let mut receiver = Receiver::start();
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relays = CURSORS.map(|name| receiver.relay(name, "on_poison = \"dead_letter\"")).concat();
    let text = toml(&database, "relay", Some(&servers), &format!("{relays}{}", kafka_relay("other", &topic, "")));
    let replicas = ["r1", "r2"].map(|name| Process::spawn(&text, &["run", "--replica-id", name]));
    let listeners = [listener(&replicas[0]).await, listener(&replicas[1]).await];
    insert(&owner, 1).await;
    for cursor in CURSORS {
        eventually(PATIENCE * 2, || async { receiver.accepted(cursor) == ["1"] }).await;
    }

    receiver.answer(|_| (503, Duration::from_millis(200)));
    insert(&owner, 30).await;
    all_circuits(&owner, &CURSORS, true, PATIENCE * 2).await;
    let worst = others_go_on(&owner, &servers, &topic, 31, 5).await;
    println!(
        "with the receiver out the slowest of 5 rows of the other sink took {worst:?}, the consumer's start included"
    );
    let opened = [opened_at(&owner, "a").await, opened_at(&owner, "b").await];
    let probes = |cursor: usize| {
        let seen = receiver.requests();
        seen.iter().filter(|r| r.key == format!("{}/2", CURSORS[cursor]) && r.at > opened[cursor]).count()
    };
    eventually(PATIENCE * 3, || async { probes(0) >= 5 && probes(1) >= 5 }).await;
    for cursor in CURSORS {
        let sink = circuit(&text, cursor).await;
        assert_eq!((&sink["kind"], &sink["circuit"]), (&"http".into(), &"open".into()));
        assert!(sink["opened_at"].is_string(), "{sink}");
        why_says_open(&text, cursor).await;
        assert!(logged(&replicas, cursor, "circuit open: "), "{cursor}");
        let error = standing(&owner, cursor).await.unwrap().3;
        assert_eq!((&error["class"], &error["code"]), (&"retry".into(), &"http_503".into()));
    }
    assert_eq!(circuit(&text, "other").await["circuit"], "closed");
    gauges(&listeners, "http", &CURSORS, 1).await;
    let requests = receiver.requests();
    for (cursor, opened_at) in CURSORS.iter().zip(opened) {
        rare_and_alone(&requests, cursor, "2", opened_at);
    }
    assert!(requests.iter().all(|request| ["1", "2"].iter().any(|row| request.key.ends_with(&format!("/{row}")))));

    receiver.down();
    let refused = || async { standing(&owner, "a").await.unwrap().3["code"] == "connect" };
    eventually(PATIENCE * 2, refused).await;
    assert_eq!(letters(&owner).await, 0, "however long it takes, no row is blamed");

    // Row 20 will never be accepted; the outage has used up none of its attempts.
    receiver.answer(|request| (if request.key.ends_with("/20") { 422 } else { 200 }, Duration::ZERO));
    receiver.up();
    let expected: Vec<String> = numbers(1..=36).into_iter().filter(|id| id != "20").collect();
    for cursor in CURSORS {
        eventually(PATIENCE * 4, || async { receiver.accepted(cursor).len() >= expected.len() }).await;
        assert_eq!(receiver.accepted(cursor), expected, "{cursor}: all, once, in order");
    }
    all_circuits(&owner, &CURSORS, false, PATIENCE).await;
    gauges(&listeners, "http", &CURSORS, 0).await;
    for cursor in CURSORS {
        assert_eq!(circuit(&text, cursor).await["circuit"], "closed");
        assert!(logged(&replicas, cursor, "circuit closed: "), "{cursor}");
    }
    let attempts = owner.query("SELECT attempts FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(attempts.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 1], "one try each, then put aside");
    assert_eq!(ids(&servers, &topic).await, numbers(1..=36));
}

// Guarantee: failures.recovery-log
#[tokio::test(flavor = "multi_thread")]
async fn recovered_circuit_is_logged_once() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &receiver.relay("a", ""));
    let replicas = ["r1", "r2"].map(|name| Process::spawn(&text, &["run", "--replica-id", name]));
    receiver.answer(|_| (503, Duration::ZERO));
    insert(&owner, 200).await;
    all_circuits(&owner, &["a"], true, PATIENCE * 2).await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, || async { receiver.accepted("a").len() == 200 }).await;
    insert(&owner, 20).await;
    eventually(PATIENCE * 2, || async { receiver.accepted("a").len() == 220 }).await;
    all_circuits(&owner, &["a"], false, PATIENCE * 2).await;
    let closed = || -> usize { replicas.iter().map(|replica| replica.log().matches("circuit closed").count()).sum() };
    eventually(PATIENCE, async || closed() > 0).await;
    assert_eq!(closed(), 1, "one line for one outage");
}

// Guarantee: failures.recovery-log
#[tokio::test(flavor = "multi_thread")]
async fn circuit_that_is_closed_because_no_row_waits_is_logged_once() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &receiver.relay("a", ""));
    let replica = Process::spawn(&text, &["run"]);
    line(&replica, "relay ready").await;
    // What a replica left behind that had the only row, which was deleted then.
    let open = "INSERT INTO outbox.cursor_status (cursor, state, circuit_opened_at) VALUES ('a', 'backing_off', now()) \
                ON CONFLICT (cursor) DO UPDATE SET state = 'backing_off', circuit_opened_at = now()";
    owner.batch_execute(open).await.unwrap();
    all_circuits(&owner, &["a"], false, PATIENCE * 3).await;
    line(&replica, "circuit closed: no row waits any more").await;
    assert_eq!(replica.log().matches("circuit closed").count(), 1, "{}", replica.log());
}

// Guarantee: failures.circuit
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_rows_and_changes_for_fewer_requests_open_no_circuit() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    receiver.answer(|request| (if request.key.starts_with("change/") { 429 } else { 422 }, Duration::ZERO));
    let relays = [
        receiver.relay("halts", ""),
        receiver.relay("buries", "on_poison = \"dead_letter\""),
        receiver.relay("change", ""),
    ];
    insert(&owner, 8).await;
    let text = toml(&database, "relay", None, &relays.concat());
    let replica = Replica::start(&config(&database, "relay", None, &relays.concat()), "r1");
    halted(&owner, "halts").await;
    eventually(PATIENCE * 2, || async { letters(&owner).await == 8 }).await;
    let changes = || receiver.requests().iter().filter(|request| request.key.starts_with("change/")).count();
    eventually(PATIENCE * 2, || async { changes() >= 6 }).await;
    for cursor in ["halts", "buries", "change"] {
        assert_eq!(circuit(&text, cursor).await["circuit"], "closed", "{cursor}");
    }
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 2, || async { receiver.accepted("change") == numbers(1..=8) }).await;
    insert(&owner, 1).await;
    eventually(PATIENCE * 2, || async { receiver.accepted("buries") == ["9"] }).await;
    replica.stop().await;
    assert!(receiver.accepted("halts").is_empty(), "a halt waits for somebody");
}
