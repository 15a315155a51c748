//! Late rows without an end, and late rows of cursors that others take the place of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::Signal;

use super::sinks::accepted;
use super::{LONG_ENOUGH, insert, late_rows, marked, run, swept};
use crate::support::outside::stdout_relay;
use crate::support::receiver::Receiver;
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

// Guarantee: late.endless
#[tokio::test(flavor = "multi_thread")]
async fn rows_flow_in_order_while_others_come_late_faster_than_they_can_be_sent() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = swept(&database).await;
    let _process = Process::spawn(&toml(&database, "relay", None, &receiver.relay("r", "")), &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || accepted(&receiver) == ["1"]).await;
    receiver.answer(|_| (200, Duration::from_millis(5)));
    let (writer, stop) = (database.connect("app").await, Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let late = tokio::spawn(async move {
        let rows = "INSERT INTO bookings (created_at, payload) SELECT clock_timestamp() - interval '1 hour', 'late' \
                    FROM generate_series(1, 20)";
        while !stopped.load(Relaxed) {
            run(&writer, rows).await;
            tokio::time::sleep(Duration::from_millis(20)).await; // how fast they come
        }
    });
    let waiting = async || {
        let sql = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'redriving'";
        owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    eventually(PATIENCE * 2, async || waiting().await > 500).await;
    let plain = || accepted(&receiver).into_iter().filter(|id| !id.ends_with('*')).collect::<Vec<_>>();
    let mut wanted = plain();
    for _ in 0..5 {
        let sql = "INSERT INTO bookings (created_at, payload) VALUES (clock_timestamp(), 'in time') RETURNING id::text";
        wanted.push(owner.query_one(sql, &[]).await.unwrap().get(0));
        eventually(PATIENCE, async || plain() == wanted).await;
        assert!(waiting().await > 0, "late rows wait all the time");
    }
    stop.store(true, Relaxed);
    late.await.unwrap();
}

/// The relay with so many shards.
fn sharded(shards: u32) -> String {
    stdout_relay("late", &format!("shards = {shards}\nshard_key = \"customer\""))
}

/// Makes the indexes of two and of three shards.
async fn indexed(database: &Database) {
    for shards in [2, 3] {
        let text = toml(database, "postgres", None, &sharded(shards));
        let (code, out, log) = outbox_relay(&text, &["migrate", "up", "--indexes"]).await;
        assert_eq!(code, Some(0), "{out} {log}");
    }
}

// Guarantee: late.reshard
#[tokio::test]
async fn reshard_waits_until_rows_that_came_late_are_delivered() {
    let database = database().await;
    let owner = swept(&database).await;
    indexed(&database).await;
    let mut process = Process::spawn(&toml(&database, "relay", None, &sharded(2)), &["run"]);
    let rows = "INSERT INTO bookings (created_at, customer) SELECT clock_timestamp() - make_interval(mins => $1), 'c' || n \
                FROM generate_series(1, 20) AS n";
    owner.execute(rows, &[&0]).await.unwrap();
    eventually(PATIENCE * 2, async || marked(&process).len() == 20).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    owner.execute(rows, &[&10]).await.unwrap();
    let text = toml(&database, "postgres", None, &sharded(3));
    let (code, out, log) = outbox_relay(&text, &["cursor", "reshard", "late", "--timeout", "5s"]).await;
    assert_eq!(code, Some(1), "no replica runs that would deliver them: {out} {log}");
    let cursors = "SELECT count(*) FROM outbox.cursor";
    assert_eq!(owner.query_one(cursors, &[]).await.unwrap().get::<_, i64>(0), 2, "{log}");
    let former = Process::spawn(&toml(&database, "relay", None, &sharded(2)), &["run"]);
    let (code, out, log) = outbox_relay(&text, &["cursor", "reshard", "late"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    let mut ids: Vec<u32> =
        marked(&former).iter().map(|id| id.strip_suffix('*').expect("all are late").parse().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (21..=40).collect::<Vec<_>>(), "{}", former.log());
    drop(former);
    let process = Process::spawn(&toml(&database, "relay", None, &sharded(3)), &["run"]);
    owner.execute(rows, &[&0]).await.unwrap();
    eventually(PATIENCE * 2, async || marked(&process).len() >= 20).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!((marked(&process).len(), late_rows(&owner).await), (20, 20), "{}", process.log());
}

/// Of two shards, one is idle and keeps its snapshot, and the other delivers in transactions of their own.
// Guarantee: late.reshard
#[tokio::test]
async fn rows_that_were_delivered_before_a_reshard_do_not_come_late_after_it() {
    let database = database().await;
    let owner = swept(&database).await;
    indexed(&database).await;
    let process = Process::spawn(&toml(&database, "relay", None, &sharded(2)), &["run"]);
    for customer in 1..=8 {
        let sql = "INSERT INTO bookings (created_at, customer) VALUES (clock_timestamp(), 'c' || $1::int4)";
        owner.execute(sql, &[&customer]).await.unwrap();
        eventually(PATIENCE * 2, async || marked(&process).len() == usize::try_from(customer).unwrap()).await;
    }
    let text = toml(&database, "postgres", None, &sharded(3));
    let (code, out, log) = outbox_relay(&text, &["cursor", "reshard", "late"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    drop(process);
    let process = Process::spawn(&toml(&database, "relay", None, &sharded(3)), &["run"]);
    owner.batch_execute("INSERT INTO bookings (created_at, customer) VALUES (clock_timestamp(), 'c1')").await.unwrap();
    eventually(PATIENCE * 2, async || !marked(&process).is_empty()).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!((marked(&process), late_rows(&owner).await), (vec!["9".to_owned()], 0), "{}", process.log());
}
