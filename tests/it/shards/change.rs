//! Another number of shards: refused, and handed over.

use outbox_relay::cursor::{self, Creation};
use outbox_testkit::bookings::{CreatedAt, Layout, Table};
use rustix::process::Signal;

use super::{Stage, assert_faithful};
use crate::support::outside::{get, listener};
use crate::support::reader::sessions;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay};

/// Runs the hand-over to so many shards, as the table's owner.
async fn reshard(stage: &Stage, shards: u32, more: &[&str]) -> (Option<i32>, String, String) {
    let args: Vec<&str> = ["cursor", "reshard", "events"].iter().chain(more).copied().collect();
    outbox_relay(&stage.toml("postgres", shards), &args).await
}

/// The code of the halt that is written down for a cursor.
async fn code(stage: &Stage, cursor: &str) -> Option<String> {
    let sql = "SELECT last_error ->> 'code' FROM outbox.cursor_status WHERE cursor = $1 AND halted";
    stage.owner.query_opt(sql, &[&cursor]).await.unwrap().and_then(|row| row.get(0))
}

/// Waits until a replica is ready.
async fn ready(replica: &Process) {
    let url = format!("{}/readyz", listener(replica).await);
    eventually(PATIENCE * 6, async || get(&url).await.0 == 200).await;
}

// Guarantee: shards.other-number
#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_shards_is_refused_and_the_former_cursors_go_on() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[2, 3]).await;
    let writers = stage.load(Some(300.0)).await;
    let old = stage.replica("old", 2);
    stage.goes_on(100).await;
    let before = ["events#0", "events#1"];
    for (shards, refused) in [(3, "events#2"), (1, "events")] {
        let new = stage.replica("new", shards);
        eventually(PATIENCE * 6, async || code(&stage, refused).await.as_deref() == Some("shards_changed")).await;
        stage.goes_on(100).await;
        let names: Vec<String> = stage.cursors().await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, before, "the refused relay has made no cursor");
        let (code, out, log) =
            outbox_relay(&stage.toml("relay", shards), &["cursor", "create", "events", "--beginning"]).await;
        assert!(code == Some(1) && log.contains("cursor reshard events"), "{out} {log}");
        drop(new);
    }
    let (code, _, log) = outbox_relay(&stage.toml("relay", 3), &["cursor", "adopt", "events#0", "--yes"]).await;
    assert!(code == Some(1) && log.contains("another number of shards would lose or repeat rows"), "{log}");
    let (_, report) = stage.settle(writers).await;
    assert_faithful(&report, false);
    drop(old);
}

/// A replica of the former number that starts in the moment of the hand-over: what it saw is over when it may write.
#[tokio::test]
async fn a_replica_of_the_former_number_makes_no_cursor_again_that_a_hand_over_ends() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let identity = |shards: u32| {
        format!("{{\"table\": \"public.bookings\", \"shards\": \"{shards}\", \"shard_key\": \"customer\"}}")
    };
    let session = sessions(&database, "relay", "outbox-relay/late").open().await.unwrap();
    let make = async |name: &str, shards: u32| {
        let identity = identity(shards);
        let creation = Creation { name, relay: "events", identity: &identity, position: None, rule: None, sweep: None };
        cursor::create(&session, creation).await.unwrap()
    };
    for name in ["events#0", "events#1", "events#2"] {
        assert!(make(name, 3).await, "{name}");
    }
    let hand_over = database.connect("postgres").await;
    let two = identity(2);
    hand_over
        .batch_execute(&format!(
            "BEGIN; DELETE FROM outbox.cursor; INSERT INTO outbox.cursor (name, relay, identity) \
             VALUES ('events#0', 'events', '{two}'), ('events#1', 'events', '{two}')"
        ))
        .await
        .unwrap();
    let late = tokio::time::timeout(PATIENCE, make("events#2", 3)).await;
    assert!(!late.expect("it waits for the end of the hand-over, and then writes what it saw before"));
    hand_over.batch_execute("COMMIT").await.unwrap();
    assert!(!make("events#2", 3).await, "cursors of another number are there");
    let names = owner.query("SELECT name FROM outbox.cursor ORDER BY name", &[]).await.unwrap();
    assert_eq!(names.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["events#0", "events#1"]);
}

/// Writers write and replicas of each number run, from the first number on to the last.
async fn hands_over(table: Table, numbers: &[u32], kill: bool) {
    let stage = Stage::new(table).await;
    stage.indexes(&numbers.iter().copied().filter(|number| *number > 1).collect::<Vec<_>>()).await;
    let mut replicas: Vec<Process> = ["a", "b"].iter().map(|name| stage.replica(name, numbers[0])).collect();
    let writers = stage.load(Some(800.0)).await;
    stage.goes_on(500).await;
    for (from, to) in numbers.iter().zip(&numbers[1..]) {
        // As a rollout does: those of the new number come while those of the former run.
        let mut new: Vec<Process> = ["c", "d"].iter().map(|name| stage.replica(&format!("{name}{to}"), *to)).collect();
        stage.goes_on(200).await;
        if kill {
            replicas[0].signal(Signal::KILL);
            replicas[0].wait().await;
            replicas[0] = stage.replica(&format!("again{from}"), *from);
        }
        let (code, out, log) = reshard(&stage, *to, &["--timeout", "60s"]).await;
        assert_eq!(code, Some(0), "{from} to {to}: {out} {log}");
        println!("{from} to {to}: {out}");
        let mut names: Vec<String> = (0..*to).map(|number| format!("events#{number}")).collect();
        if *to == 1 {
            names = vec!["events".to_owned()];
        }
        assert_eq!(stage.cursors().await.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), names);
        for replica in &new {
            ready(replica).await;
        }
        stage.goes_on(300).await;
        if kill {
            new[1].signal(Signal::KILL);
            new[1].wait().await;
            new[1] = stage.replica(&format!("once-more{to}"), *to);
            stage.goes_on(300).await;
        }
        // The former ones are still there, and do nothing any more.
        for replica in &mut replicas {
            replica.signal(Signal::TERM);
            assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
        }
        replicas = new;
    }
    let (rows, report) = stage.settle(writers).await;
    println!("{rows} rows, {} duplicates", report.duplicates());
    assert_faithful(&report, kill);
}

// Guarantee: shards.reshard
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_to_another_number_under_load_loses_repeats_and_reorders_nothing() {
    hands_over(Table::PLAIN, &[1, 4, 2, 1], false).await;
}

// Guarantee: shards.reshard-kills
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_under_kills_loses_nothing_and_keeps_the_order_of_each_key() {
    hands_over(Table::PLAIN, &[2, 3, 2], true).await;
}

// Guarantee: shards.reshard
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_of_a_partitioned_table_under_the_rule_transactions_loses_repeats_and_reorders_nothing() {
    hands_over(Table { created_at: CreatedAt::Now, layout: Layout::Hashes }, &[2, 4], false).await;
}

// Guarantee: shards.reshard-refused
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_that_cannot_be_done_changes_nothing_and_says_why() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[2]).await;
    let (code, _, log) = reshard(&stage, 2, &[]).await;
    assert!(code == Some(1) && log.contains("has no cursors yet"), "{log}");
    let (code, _, log) = reshard(&stage, 3, &[]).await;
    assert!(code == Some(1) && log.contains("no index for 3 shards"), "{log}");
    stage.indexes(&[3]).await;
    let writers = stage.load(Some(200.0)).await;
    let mut old = stage.replica("old", 2);
    stage.goes_on(200).await;
    let (code, out, log) = reshard(&stage, 2, &[]).await;
    assert!(code == Some(0) && out.contains("its cursors are those that are configured"), "{out} {log}");
    let verb = async |verb: &str| outbox_relay(&stage.toml("relay", 2), &["cursor", verb, "events#1"]).await.0;
    assert_eq!(verb("pause").await, Some(0));
    let (code, _, log) = reshard(&stage, 3, &[]).await;
    assert!(code == Some(1) && log.contains("cursor events#1 is paused"), "{log}");
    assert_eq!(verb("resume").await, Some(0));
    let halt = "INSERT INTO outbox.cursor_status (cursor, state, halted, fingerprint, last_error) \
                VALUES ('events#0', 'halted', true, 'f', '{\"code\": \"order_changed\"}') ON CONFLICT (cursor) DO UPDATE SET \
                state = excluded.state, halted = true, fingerprint = 'f', last_error = excluded.last_error";
    stage.owner.batch_execute(halt).await.unwrap();
    let (code, _, log) = reshard(&stage, 3, &[]).await;
    assert!(code == Some(1) && log.contains("halted with order_changed, which an operator must decide"), "{log}");
    stage.owner.batch_execute("DELETE FROM outbox.cursor_status WHERE cursor = 'events#0'").await.unwrap();
    // The relay's own role may not write the table: nobody but an owner changes this.
    let (code, _, log) = outbox_relay(&stage.toml("relay", 3), &["cursor", "reshard", "events"]).await;
    assert!(code == Some(1) && log.contains("permission denied"), "{log}");
    old.signal(Signal::TERM);
    old.wait().await;
    stage.owner.batch_execute("DELETE FROM outbox.cursor_status").await.unwrap();
    eventually(PATIENCE, async || {
        let sql =
            "SELECT count(*) > 0 FROM bookings WHERE created_at > (SELECT max(position_created_at) FROM outbox.cursor)";
        stage.owner.query_one(sql, &[]).await.unwrap().get(0)
    })
    .await;
    let left = stage.cursors().await;
    stage
        .owner
        .batch_execute("UPDATE outbox.cursor SET position_created_at = '2026-01-01' WHERE name = 'events#0'")
        .await
        .unwrap();
    let (code, _, log) = reshard(&stage, 3, &["--timeout", "1s"]).await;
    assert!(
        code == Some(1) && log.contains("cursor events#0 has not read") && log.contains("Nothing has changed"),
        "{log}"
    );
    let names = |cursors: Vec<(String, Option<String>)>| cursors.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(stage.cursors().await), names(left));
    writers.stop().await.unwrap();
}
