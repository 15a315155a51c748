//! Lanes under failures of all kinds, and kills of three replicas.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use super::{Stage, ahead, book, by_customer, customer};
use crate::support::{PATIENCE, Process, eventually};

const IN_FLIGHT: usize = 12;
const LANES: i64 = 60;
const ROUNDS: usize = 10;
const EACH: i64 = 300;

// Guarantee: lanes.order
// Guarantee: lanes.crash
#[tokio::test(flavor = "multi_thread")]
async fn each_lane_keeps_its_order_through_errors_hangs_and_kills() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::new().await;
    let (owner, receiver) = (&stage.owner, &stage.receiver);
    receiver.answer(|request| {
        let pause = Duration::from_millis(fastrand::u64(0..15));
        match fastrand::u32(..1000) {
            0..70 => (503, pause),
            70..80 => (429, pause),
            80..110 => (500, pause),
            // Longer than the time-out: the relay cannot know that it was accepted.
            110..113 => (200, Duration::from_millis(1_500)),
            _ => (if customer(request) == "k7" && fastrand::u8(..2) == 0 { 502 } else { 200 }, pause),
        }
    });
    let turn = "deadline = \"2s\"\n";
    let text = stage.text(IN_FLIGHT, "", turn).replace("[relay.sink.http]\n", "[relay.sink.http]\ntimeout = \"1s\"\n");
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    let (mut kills, mut rows) = (0, 0_i64);
    for round in 0..ROUNDS {
        book(owner, EACH, LANES).await;
        rows += EACH;
        let at_least = receiver.accepted("h").len() + 120;
        eventually(PATIENCE * 6, async || receiver.accepted("h").len() >= at_least).await;
        let which = random.usize(0..3);
        match round % 3 {
            0 => {
                replicas[which].signal(Signal::STOP);
                tokio::time::sleep(Duration::from_millis(300)).await;
                replicas[which].signal(Signal::CONT);
            }
            1 => {
                replicas[which].signal(Signal::TERM);
                replicas[which].wait().await;
                replicas[which] = start(format!("r{which}-{round}"));
            }
            _ => {
                kills += 1;
                replicas.iter().for_each(|replica| replica.signal(Signal::KILL));
                for (which, replica) in replicas.iter_mut().enumerate() {
                    replica.wait().await;
                    *replica = start(format!("r{which}-{round}"));
                }
            }
        }
    }
    receiver.answer(|_| (200, Duration::ZERO));
    let rows = usize::try_from(rows).unwrap();
    eventually(PATIENCE * 12, async || {
        let accepted: BTreeSet<String> = receiver.accepted("h").into_iter().collect();
        accepted.len() == rows
    })
    .await;
    for (customer, ids) in by_customer(receiver) {
        assert!(ids.is_sorted(), "{customer}, seed {seed}: {ids:?}");
    }
    let requests = receiver.requests();
    let accepted = receiver.accepted("h").len();
    // Timed out at the relay, and accepted all the same: each may come again.
    let late = requests.len() - requests.iter().filter(|request| request.status != 200).count() - accepted;
    assert_eq!(late, 0);
    let slow = accepted.saturating_sub(rows);
    let faults = requests.iter().filter(|request| request.status != 200).count();
    println!("{rows} rows, {accepted} accepted, {slow} repeated, {faults} failures, {kills} kills");
    assert!(faults >= 150, "{faults} failures are too few to mean something");
    // A hang is repeated once and more, a pause longer than the lock's life too; a kill repeats what was in flight.
    let hangs = rows * 3 / 1000 * 4 + 30;
    assert!(slow <= kills * IN_FLIGHT + (ROUNDS / 3 + 1) * IN_FLIGHT + hangs, "{slow} repeated, seed {seed}");
    drop(replicas);
    assert!(ahead(owner).await <= 1_000);
}
