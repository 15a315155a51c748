//! Keys that are parked and released under kills.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{http, no_key_is_parked, refusing};
use crate::lanes::checker::{Allowed, Arrival, Outcome, Verdict, at_least_once};
use crate::lanes::storms::{self, Blow, REPLICAS, Replicas};
use crate::support::receiver::{Receiver, Request};
use crate::support::{CLOCK, PATIENCE, bookings, database, eventually, outbox_relay, toml};

const KEYS: i64 = 20;
const ROUNDS: usize = 8;

/// All that came, as the checker of lanes takes it: the lane of a row is its key. What was cut off before it was answered was
/// not accepted.
fn arrivals(receiver: &Receiver) -> Vec<Arrival> {
    let of = |request: &Request| {
        let number: i64 = request.key.strip_prefix("h/").unwrap().parse().unwrap();
        let outcome = if request.status == 200 { Outcome::Accepted } else { Outcome::Refused };
        Arrival { lane: key(number), number, outcome, replayed: request.replayed }
    };
    receiver.requests().iter().map(of).collect()
}

fn key(number: i64) -> String {
    format!("k{}", number % KEYS)
}

// Guarantee: parked.order
// Guarantee: parked.others
#[tokio::test(flavor = "multi_thread")]
async fn order_of_each_key_survives_refusals_redrives_and_kills_of_three_replicas() {
    static FIXED: AtomicBool = AtomicBool::new(false);
    let seed = storms::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    receiver.answer(|request| {
        let refused = request.body.contains("bad") && !FIXED.load(Ordering::Relaxed) || fastrand::u8(..) == 0;
        (if refused { 422 } else { 200 }, Duration::ZERO)
    });
    let text = toml(&database, "relay", None, &http(&receiver, "")).replace("rows = 50", "rows = 10");
    let mut replicas = Replicas::start(&text);
    // Row n has the key n modulo KEYS, so that the receiver's list tells the keys.
    let insert = "INSERT INTO bookings (customer, payload) SELECT 'k' || n % $3, CASE WHEN random() < 0.02 THEN 'bad' ELSE 'good' END \
                  FROM generate_series($1::bigint, $2) AS n";
    let mut rows = 0_i64;
    for round in 0..ROUNDS {
        owner.execute(insert, &[&(rows + 1), &(rows + 100), &KEYS]).await.unwrap();
        rows += 100;
        let at_least = receiver.accepted("h").len() + 20;
        if round % 2 == 1 {
            let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
            assert_eq!(code, Some(0), "{log}");
        }
        FIXED.store(round % 3 == 2, Ordering::Relaxed);
        eventually(PATIENCE * 4, async || receiver.accepted("h").len() >= at_least).await;
        replicas.strike(Blow::Kill, (round, random.usize(..REPLICAS)), &owner).await;
    }
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 12, async || {
        let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
        assert_eq!(code, Some(0), "{log}");
        let accepted: BTreeSet<String> = receiver.accepted("h").into_iter().collect();
        accepted.len() == usize::try_from(rows).unwrap() && no_key_is_parked(&owner).await
    })
    .await;
    let committed = (1..=rows).map(|row| (row, key(row))).collect();
    // A turn sends ten rows, or as many parked ones, and is repeated when its replica is killed in it.
    let most = ROUNDS * 10;
    let allowed = Allowed { repeated: most, replayed: most, ..Allowed::default() };
    let verdict = at_least_once(&committed, &arrivals(&receiver), allowed);
    let Verdict { repeated, replayed, .. } = verdict;
    println!("{rows} rows, {repeated} repeated, {replayed} of parked keys");
    verdict.acquits(seed);
    assert!(repeated + replayed <= most, "{repeated} and {replayed} repeated, seed {seed}");
}
