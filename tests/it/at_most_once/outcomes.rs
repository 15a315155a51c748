//! How sending ends, and what follows for the row: accepted, provably not sent, refused, or unknown.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Stage, Target};
use crate::support::outside::{halted, json};
use crate::support::{PATIENCE, eventually, outbox_relay};

// Guarantee: at-most-once.unclear
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_not_answered_in_time_is_unknown_and_the_next_goes_on() {
    let stage = Stage::http("[relay.turn]\nrows = 3\ndeadline = \"1s\"").await;
    stage.receiver().answer(|request| {
        let pause = if request.key == "r/2" { Duration::from_secs(600) } else { Duration::ZERO };
        (if request.key == "r/4" { 503 } else { 200 }, pause)
    });
    stage.insert(6).await;
    let _replica = stage.replica("r0");
    stage.settled(6).await;
    assert_eq!(stage.arrived().await, [1, 2, 3, 4, 5, 6], "each was asked once");
    assert_eq!(stage.unknown().await, BTreeSet::from([2, 4]));

    let (code, out, log) = outbox_relay(&stage.toml, &["request", "list", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let requests = json(&out)["requests"].clone();
    let (timed_out, refused) = (&requests[0], &requests[1]);
    assert_eq!((&timed_out["error"]["code"], &refused["error"]["code"]), (&"timeout".into(), &"http_503".into()));
    assert_eq!((&timed_out["by"], &timed_out["attempts"]), (&"r0".into(), &1.into()));
    let sql = "SELECT created_at::text FROM bookings WHERE id = 2 AND created_at = $1::text::timestamptz";
    assert_eq!(stage.owner.query(sql, &[&timed_out["due_at"].as_str().unwrap()]).await.unwrap().len(), 1, "{requests}");
    let (_, table, _) = outbox_relay(&stage.toml, &["request", "list", "--relay", "r"]).await;
    assert!(table.starts_with("RELAY") && table.contains("[\"2\"]") && table.contains("timeout"), "{table}");
    let (code, _, log) = outbox_relay(&stage.toml, &["request", "list", "--relay", "other"]).await;
    assert!(code == Some(2) && log.contains("unknown relay \"other\"; known: r"), "{log}");

    let (_, out, _) = outbox_relay(&stage.toml, &["status", "-o", "json"]).await;
    let cursor = &json(&out)["cursors"][0];
    assert_eq!(cursor["unknown_outcomes"], 2, "{out}");
    let mut keys = cursor["unknown_keys"].as_array().unwrap().clone();
    keys.sort_by_key(ToString::to_string);
    assert_eq!(keys.len(), 2, "{out}");
    assert_eq!((&keys[0], &keys[1]), (&timed_out["key"], &refused["key"]), "{out}");
    let (_, table, _) = outbox_relay(&stage.toml, &["status"]).await;
    assert!(table.contains("  unknown outcomes: 2; `outbox-relay request list --unknown --relay r`"), "{table}");
}

// Guarantee: at-most-once.not-sent
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_refuses_connections_makes_nothing_unknown_and_gets_everything_when_it_is_back() {
    let mut stage = Stage::http("[relay.turn]\nrows = 4").await;
    let replicas = [stage.replica("r0"), stage.replica("r1")];
    stage.insert(3).await;
    stage.settled(3).await;
    let Target::Http(receiver) = &mut stage.target else { unreachable!() };
    receiver.down();
    stage.insert(20).await;
    let failing = async || {
        let sql = "SELECT last_error ->> 'code' FROM outbox.cursor_status WHERE cursor = 'r'";
        let row = stage.owner.query_opt(sql, &[]).await.unwrap();
        row.and_then(|row| row.get::<_, Option<String>>(0)).is_some_and(|code| code == "connect")
    };
    eventually(PATIENCE * 2, failing).await;
    let Target::Http(receiver) = &mut stage.target else { unreachable!() };
    receiver.up();
    stage.settled(23).await;
    assert_eq!(stage.arrived().await, (1..=23).collect::<Vec<_>>());
    assert_eq!(stage.unknown().await, BTreeSet::new());
    drop(replicas);
}

// Guarantee: at-most-once.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_row_halts_in_front_of_it_and_is_neither_passed_nor_unknown() {
    let stage = Stage::http("[relay.turn]\nrows = 5").await;
    let status = std::sync::Arc::new(std::sync::atomic::AtomicU16::new(422));
    let mood = std::sync::Arc::clone(&status);
    stage.receiver().answer(move |request| {
        let refused = request.key == "r/3";
        (if refused { mood.load(std::sync::atomic::Ordering::Relaxed) } else { 200 }, Duration::ZERO)
    });
    stage.insert(5).await;
    let _replica = stage.replica("r0");
    let (message_id, _) = halted(&stage.owner, "r").await;
    stage.settled(2).await;
    assert_eq!((message_id.as_deref(), stage.arrived().await), (Some("3"), vec![1, 2, 3]));
    status.store(200, std::sync::atomic::Ordering::Relaxed);
    let (code, _, log) = outbox_relay(&stage.toml, &["cursor", "resume", "r"]).await;
    assert_eq!(code, Some(0), "{log}");
    stage.settled(5).await;
    // The third was refused, which proves that it was not accepted: it may be sent again.
    assert_eq!(stage.receiver().accepted("r"), ["1", "2", "3", "4", "5"]);
    assert_eq!(stage.unknown().await, BTreeSet::new());
}

// Guarantee: at-most-once.poison
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_row_is_put_aside_where_that_is_the_policy_and_the_rest_goes_on() {
    let stage = Stage::http("on_poison = \"dead_letter\"\n[relay.turn]\nrows = 5").await;
    stage.receiver().answer(|request| (if request.key == "r/3" { 422 } else { 200 }, Duration::ZERO));
    stage.insert(7).await;
    let _replica = stage.replica("r0");
    stage.settled(7).await;
    assert_eq!(stage.arrived().await, [1, 2, 3, 4, 5, 6, 7]);
    let letters: Vec<String> = stage
        .owner
        .query("SELECT message_id FROM outbox.dead_letter", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!((letters, stage.unknown().await), (vec!["3".to_owned()], BTreeSet::new()));
}

// Guarantee: at-most-once.outage
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_costs_one_row_a_try_and_the_circuit_keeps_tries_rare() {
    let stage = Stage::http("[relay.turn]\nrows = 10\ndeadline = \"1s\"").await;
    stage.receiver().answer(|_| (200, Duration::from_secs(600)));
    stage.insert(40).await;
    let _replicas = [stage.replica("r0"), stage.replica("r1")];
    let sink = async || {
        let (code, out, log) = outbox_relay(&stage.toml, &["status", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{log}");
        json(&out)["cursors"][0]["sink"]["circuit"].clone()
    };
    eventually(PATIENCE * 2, async || sink().await == "open").await;
    stage.receiver().answer(|_| (200, Duration::ZERO));
    stage.settled(40).await;
    let (missing, listed) = stage.holds(40).await;
    let accepted = stage.receiver().accepted("r").len();
    println!("until the circuit was open and closed again {listed} of 40 rows were tried in vain");
    assert_eq!((missing, listed + accepted), (0, 40), "a try costs the row that it tried, and no other");
    assert!((3..=10).contains(&listed), "{listed}");
    eventually(PATIENCE * 2, async || sink().await == "closed").await;
}

// Guarantee: at-most-once.slow
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_makes_nothing_unknown_however_many_rows_a_turn_may_take() {
    let stage = Stage::http("[relay.turn]\nrows = 100\ndeadline = \"1s\"").await;
    stage.receiver().answer(|_| (200, Duration::from_millis(100)));
    stage.insert(30).await;
    let replica = stage.replica("r0");
    stage.settled(30).await;
    assert_eq!(stage.arrived().await, (1..=30).collect::<Vec<_>>(), "each was asked once");
    assert_eq!(stage.unknown().await, BTreeSet::new(), "{}", replica.log());
}
