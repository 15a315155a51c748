//! Lanes under failures of all kinds: errors, hangs, messages that are refused for good, kills of three replicas, and connections that
//! are ended.

use std::collections::HashSet;
use std::time::Duration;

use fastrand::Rng;
use tokio_postgres::Client;

use super::checker::{Allowed, Outcome, at_least_once};
use super::storms::{self, Blow, HANG, Log, Mood, Replicas, Script, book_some_bad, booking, impatient};
use super::{Stage, ahead, committed, customer, position};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, eventually, outbox_relay};

const IN_FLIGHT: usize = 12;
const LANES: i64 = 60;
const ROUNDS: usize = 15;
const EACH: i64 = 300;
/// An operator's rows in one turn: what a kill repeats of them.
const REDRIVEN: usize = 100;
/// One each round, in turn.
const BLOWS: [Blow; 5] =
    [Blow::Freeze(Duration::from_millis(300)), Blow::Stop, Blow::KillAll, Blow::Disconnect, Blow::Kill];

fn answer(random: &mut Rng, request: &Request, mood: Mood) -> (u16, Duration) {
    let pause = Duration::from_millis(random.u64(0..15));
    let is_bad = request.body.ends_with("bad") && !mood.cured;
    match random.u32(..1000) {
        _ if is_bad => (422, pause),
        _ if mood.calm => (200, Duration::ZERO),
        0..100 => (503, pause),
        100..106 => (429, pause),
        106..136 => (500, pause),
        136..138 => (200, HANG),
        _ if customer(request) == "k7" && random.bool() => (502, pause),
        _ => (200, pause),
    }
}

/// How many different rows were accepted.
fn distinct(log: &Log) -> usize {
    let arrivals = log.arrivals();
    let accepted = arrivals.iter().filter(|arrival| arrival.outcome.is_accepted());
    accepted.map(|arrival| arrival.number).collect::<HashSet<_>>().len()
}

async fn redrive(text: &str) {
    let (code, _, log) = outbox_relay(text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
}

// Guarantee: lanes.order
// Guarantee: lanes.crash
// Guarantee: lanes.poison
#[tokio::test(flavor = "multi_thread")]
async fn each_lane_keeps_its_order_through_errors_hangs_poison_and_kills() {
    let seed = storms::seed();
    let mut random = Rng::with_seed(seed);
    let stage = Stage::new().await;
    let owner = &stage.owner;
    let log = Log::keep(&stage.receiver, seed, Script { hang: HANG, of: booking, answer });
    let text = impatient(&stage.text(IN_FLIGHT, "on_poison = \"park_key\"\n", "deadline = \"2s\"\n"));
    let mut replicas = Replicas::start(&text);
    let (mut cuts, mut others, mut bad) = (0, 0, 0);
    for round in 0..ROUNDS {
        bad += book_some_bad(owner, &mut random, (EACH, LANES)).await;
        log.set(Mood { cured: round % 3 == 2, calm: false });
        if round % 2 == 1 {
            redrive(&text).await;
        }
        // What came before is passed: refused rows are dead letters, and their lanes are parked.
        let before = i64::try_from(round).unwrap() * EACH;
        eventually(PATIENCE * 6, async || passed(owner).await >= before).await;
        let blow = BLOWS[round % BLOWS.len()];
        replicas.strike(blow, (round, random.usize(..storms::REPLICAS)), owner).await;
        if blow.is_cut() {
            cuts += 1;
        } else {
            others += 1;
        }
    }
    log.set(Mood { cured: true, calm: true });
    let rows = ROUNDS * usize::try_from(EACH).unwrap();
    eventually(PATIENCE * 12, async || {
        redrive(&text).await;
        distinct(&log) == rows
    })
    .await;
    eventually(PATIENCE * 4, async || position(owner).await == Some(rows.to_string()) && nothing_waits(owner).await)
        .await;
    drop(replicas);
    let arrivals = log.arrivals();
    // Each cut may repeat what was on its way.
    let allowed = Allowed { repeated: cuts * IN_FLIGHT, replayed: cuts * REDRIVEN, ..Allowed::default() };
    let verdict = at_least_once(&committed(owner).await, &arrivals, allowed);
    let failures = arrivals.iter().filter(|arrival| arrival.outcome != Outcome::Accepted).count();
    let redriven = arrivals.iter().filter(|arrival| arrival.replayed && arrival.outcome.is_accepted()).count();
    let (refused, repeated, again) = (log.refused(), verdict.repeated, verdict.replayed);
    println!(
        "{rows} rows, {failures} failures ({refused} refusals of {bad} rows), {cuts} cuts, {others} other faults; \
         {repeated} repeated, {redriven} redriven, {again} of them again"
    );
    verdict.acquits(seed);
    assert!(failures + cuts + others >= 500, "too few faults to mean something");
    assert!(refused > 0 && redriven > bad / 4, "too little was parked and redriven to mean something");
    assert!(ahead(owner).await <= 1_000);
}

/// The id of the row that the cursor stands at.
async fn passed(owner: &Client) -> i64 {
    position(owner).await.map_or(0, |id| id.parse().unwrap())
}

/// No dead letter and no parked row is left.
async fn nothing_waits(owner: &Client) -> bool {
    let sql = "SELECT (SELECT count(*) FROM outbox.dead_letter WHERE state IN ('dead', 'redriving')) \
               + (SELECT count(*) FROM outbox.parked) + (SELECT count(*) FROM outbox.parked_key)";
    owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0
}
