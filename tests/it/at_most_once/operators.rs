//! Operators' verbs, rates and single runs under `at_most_once`.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use super::{Stage, Target};
use crate::support::outside::{get, listener};
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

async fn does(stage: &Stage, args: &[&str]) {
    let (code, out, log) = outbox_relay(&stage.toml, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{log}");
}

/// Kills the only replica while this row is on its way.
async fn killed_at(stage: &Stage, row: i64) {
    let key = format!("r/{row}");
    stage
        .receiver()
        .answer(move |request| (200, if request.key == key { Duration::from_secs(600) } else { Duration::ZERO }));
    let mut replica = stage.replica("killed");
    eventually(PATIENCE * 2, async || stage.arrived().await.contains(&row)).await;
    replica.signal(Signal::KILL);
    replica.wait().await;
}

// Guarantee: at-most-once.listed
#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_flight_is_listed_also_while_the_cursor_is_paused_and_counted_in_a_metric() {
    let stage = Stage::http("[relay.turn]\nrows = 4").await;
    stage.insert(6).await;
    killed_at(&stage, 2).await;
    does(&stage, &["cursor", "pause", "r"]).await;
    let replica = stage.replica("r1");
    eventually(PATIENCE * 2, async || stage.unknown().await == BTreeSet::from([1, 2, 3, 4])).await;
    assert_eq!(stage.position().await, (4, false));
    assert_eq!(stage.arrived().await, [1, 2], "a paused cursor sends nothing");
    does(&stage, &["cursor", "resume", "r"]).await;
    stage.settled(6).await;
    assert_eq!(stage.arrived().await, [1, 2, 5, 6]);
    let metrics = format!("{}/metrics", listener(&replica).await);
    let shows = async |line: &str| get(&metrics).await.1.lines().any(|shown| shown == line);
    eventually(PATIENCE * 2, async || shows("outbox_relay_unknown_outcomes{cursor=\"r\"} 4").await).await;
    assert!(shows("outbox_relay_ambiguous_total{cursor=\"r\",sink=\"http\"} 4").await);
    assert!(shows("outbox_relay_redelivered_rows_total{cursor=\"r\",sink=\"http\"} 0").await);
    assert!(replica.log().contains("recorded as unknown"), "{}", replica.log());
    // Settled by the operator, as the runbook says.
    does(&stage, &["request", "settle", "1", "2", "--relay", "r", "--arrived", "--yes"]).await;
    does(&stage, &["request", "settle", "3", "[\"4\"]", "--relay", "r", "--lost", "--yes"]).await;
    let (code, _, log) =
        outbox_relay(&stage.toml, &["request", "settle", "3", "--relay", "r", "--lost", "--yes"]).await;
    let settled = "error: relay r has no unknown outcome of row 3: it was settled already, or is still being sent\n";
    assert_eq!((code, log.as_str()), (Some(1), settled));
    let noted =
        "SELECT string_agg(detail ->> 'outcome', ', ' ORDER BY at) FROM outbox.operation WHERE verb = 'request settle'";
    assert_eq!(stage.owner.query_one(noted, &[]).await.unwrap().get::<_, &str>(0), "arrived, lost");
    eventually(PATIENCE * 2, async || shows("outbox_relay_unknown_outcomes{cursor=\"r\"} 0").await).await;
}

// Guarantee: at-most-once.run-once
#[tokio::test(flavor = "multi_thread")]
async fn a_single_run_waits_for_what_is_in_flight_and_two_at_once_send_each_row_once() {
    let stage = Stage::http("[relay.turn]\nrows = 5").await;
    stage.insert(40).await;
    let once = || Process::spawn(&stage.toml, &["run", "--once", "--timeout", "60s"]);
    let mut runs = [once(), once()];
    for run in &mut runs {
        assert_eq!(run.wait().await, Some(0), "{}", run.log());
    }
    assert_eq!((stage.position().await, stage.arrived().await), ((40, false), (1..=40).collect()));
    assert_eq!(stage.unknown().await, BTreeSet::new());
    // The row that another run had in flight when it was killed is not taken for delivered.
    stage.insert(3).await;
    killed_at(&stage, 42).await;
    let mut run = once();
    assert_eq!(run.wait().await, Some(0), "{}", run.log());
    assert_eq!((stage.position().await, stage.unknown().await), ((43, false), BTreeSet::from([41, 42, 43])));
    stage.holds(43).await;
}

// Guarantee: at-most-once.seek
#[tokio::test(flavor = "multi_thread")]
async fn a_seek_back_sends_again_because_an_operator_wants_it_and_a_halted_row_can_be_skipped() {
    let stage = Stage::http("[relay.turn]\nrows = 3").await;
    stage.insert(5).await;
    let replica = stage.replica("r0");
    stage.settled(5).await;
    does(&stage, &["cursor", "seek", "r", "--beginning", "--yes"]).await;
    eventually(PATIENCE * 2, async || stage.arrived().await.len() == 10).await;
    stage.settled(5).await;
    assert_eq!(stage.arrived().await, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
    stage.receiver().answer(|request| (if request.key == "r/7" { 422 } else { 200 }, Duration::ZERO));
    stage.insert(3).await;
    crate::support::outside::halted(&stage.owner, "r").await;
    does(&stage, &["cursor", "skip", "r", "--yes"]).await;
    stage.settled(8).await;
    assert_eq!(stage.arrived().await[10..], [6, 7, 8]);
    drop(replica);
}

/// How often a row was sent again, and the states of all dead letters.
async fn replays(stage: &Stage, row: i64) -> (usize, Vec<String>) {
    let key = format!("r/{row}");
    let replayed = stage.receiver().requests().iter().filter(|request| request.replayed && request.key == key).count();
    let sql = "SELECT state FROM outbox.dead_letter ORDER BY created_at";
    let letters = stage.owner.query(sql, &[]).await.unwrap();
    (replayed, letters.iter().map(|row| row.get(0)).collect())
}

// Guarantee: at-most-once.redrive
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_sent_again_once_whatever_happens_then() {
    let mut stage = Stage::http("on_poison = \"dead_letter\"").await;
    stage.receiver().answer(|request| match (request.replayed, request.key.as_str()) {
        (false, "r/2" | "r/4") => (422, Duration::ZERO),
        (true, "r/2") => (200, Duration::from_secs(600)),
        _ => (200, Duration::ZERO),
    });
    stage.insert(5).await;
    let mut replica = stage.replica("killed");
    stage.settled(5).await;
    let two: i64 =
        stage.owner.query_one("SELECT id FROM outbox.dead_letter WHERE message_id = '2'", &[]).await.unwrap().get(0);
    does(&stage, &["dead-letter", "redrive", &two.to_string(), "--yes"]).await;
    eventually(PATIENCE * 2, async || replays(&stage, 2).await.0 == 1).await;
    replica.signal(Signal::KILL);
    replica.wait().await;
    let _replica = stage.replica("r1");
    eventually(PATIENCE * 2, async || stage.unknown().await == BTreeSet::from([2])).await;
    assert_eq!(stage.position().await, (5, false), "the position stays where it was");

    // A receiver that cannot be reached has got nothing: the letter waits.
    let Target::Http(receiver) = &mut stage.target else { unreachable!() };
    receiver.down();
    does(&stage, &["dead-letter", "redrive", "--cursor", "r", "--yes"]).await;
    let failing = async || {
        let sql = "SELECT last_error ->> 'code' FROM outbox.cursor_status WHERE cursor = 'r'";
        let row = stage.owner.query_opt(sql, &[]).await.unwrap();
        row.and_then(|row| row.get::<_, Option<String>>(0)).is_some_and(|code| code == "connect")
    };
    eventually(PATIENCE * 2, failing).await;
    assert_eq!(replays(&stage, 4).await, (0, vec!["redriven".to_owned(), "redriving".to_owned()]));
    let Target::Http(receiver) = &mut stage.target else { unreachable!() };
    receiver.up();
    let done = vec!["redriven".to_owned(), "redriven".to_owned()];
    eventually(PATIENCE * 2, async || replays(&stage, 4).await == (1, done.clone())).await;
    assert_eq!((replays(&stage, 2).await.0, stage.unknown().await), (1, BTreeSet::from([2])));
}

// Guarantee: at-most-once.rate
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_holds_over_replicas() {
    let mut stage = Stage::http("[relay.turn]\nrows = 5").await;
    stage.toml.push_str("rate_per_second = 5.0\n");
    stage.insert(8).await;
    let replicas = [stage.replica("r0"), stage.replica("r1")];
    stage.settled(8).await;
    let requests = stage.receiver().requests();
    let shortest = requests.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).unwrap()).min().unwrap();
    println!("shortest time between two requests at 5 per second: {shortest:?}");
    assert!(shortest >= Duration::from_millis(180), "{shortest:?}");
    assert_eq!(stage.arrived().await, (1..=8).collect::<Vec<_>>());
    drop(replicas);
}
