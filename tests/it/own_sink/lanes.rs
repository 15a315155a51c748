//! Lanes of a sink of one's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Stage;
use crate::support::{PATIENCE, eventually};

const LANES: i64 = 8;
const ROWS: i64 = 80;
const IN_FLIGHT: usize = 5;

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn own_sink_sends_lanes_side_by_side_and_each_in_order() {
    let mut stage = Stage::of_bookings("").await;
    stage.toml.push_str(&format!("[relay.turn]\ndeadline = \"1s\"\nin_flight = {IN_FLIGHT}\nlane = \"customer\"\n"));
    let silent = Arc::new(AtomicBool::new(true));
    let answers = Arc::clone(&silent);
    stage.socket.answer(move |_| (!answers.load(Ordering::Relaxed)).then(|| "ok".to_owned()));
    let insert = "INSERT INTO bookings (customer, payload) SELECT 'k' || n % $2, 'seat' FROM generate_series(1, $1::bigint) AS n";
    stage.owner.execute(insert, &[&ROWS, &LANES]).await.unwrap();
    let _replica = stage.replica("r1").await;
    // None of the first is answered, so that no other is sent.
    eventually(PATIENCE * 2, async || stage.socket.ids().len() >= IN_FLIGHT).await;
    let lanes: BTreeSet<i64> = stage.socket.ids()[..IN_FLIGHT].iter().map(|id| id % LANES).collect();
    assert_eq!(lanes.len(), IN_FLIGHT, "one of each lane");
    let firsts: BTreeSet<i64> = stage.socket.ids().into_iter().collect();
    assert!(firsts.iter().all(|id| *id <= LANES), "a row behind one that was not answered: {firsts:?}");
    silent.store(false, Ordering::Relaxed);
    stage.settled(ROWS).await;
    let (mut seen, mut by_lane) = (BTreeSet::new(), BTreeMap::<i64, Vec<i64>>::new());
    for id in stage.socket.ids().into_iter().filter(|id| seen.insert(*id)) {
        by_lane.entry(id % LANES).or_default().push(id);
    }
    assert_eq!(seen.len(), usize::try_from(ROWS).unwrap());
    for (lane, ids) in by_lane {
        assert!(ids.is_sorted(), "lane {lane}: {ids:?}");
    }
}
