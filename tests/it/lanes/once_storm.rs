//! Lanes under `at_most_once`, under failures of all kinds: errors, hangs, messages that are refused for good, kills and stops
//! of three replicas, and connections that are ended.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use tokio_postgres::Client;

use super::checker::{Allowed, Outcome, at_most_once};
use super::storms::{self, Blow, HANG, Log, Mood, Replicas, Script, book_some_bad, booking, impatient};
use super::{Stage, committed, position};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, eventually};

const IN_FLIGHT: usize = 8;
/// Reserved for each of them: what a cut lists as unknown.
const RESERVED: usize = 4;
const LANES: i64 = 40;
const ROUNDS: usize = 15;
const EACH: i64 = 200;
/// One each round, in turn.
const BLOWS: [Blow; 5] =
    [Blow::Freeze(Duration::from_millis(300)), Blow::Stop, Blow::KillAll, Blow::Disconnect, Blow::Kill];

fn answer(random: &mut Rng, request: &Request, mood: Mood) -> (u16, Duration) {
    let pause = Duration::from_millis(random.u64(0..15));
    match random.u32(..1000) {
        _ if request.body.ends_with("bad") => (422, pause),
        _ if mood.calm => (200, Duration::ZERO),
        0..40 => (503, pause),
        40..50 => (500, pause),
        // An answer that says so: it comes again.
        50..53 => (429, pause),
        53..56 => (200, HANG),
        _ => (200, pause),
    }
}

/// The ids of a list.
async fn ids(owner: &Client, sql: &str) -> BTreeSet<i64> {
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0).parse().unwrap()).collect()
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_no_row_comes_twice_through_errors_hangs_poison_and_kills() {
    let seed = storms::seed();
    let mut random = Rng::with_seed(seed);
    let stage = Stage::new().await;
    let owner = &stage.owner;
    let log = Log::keep(&stage.receiver, seed, Script { hang: HANG, of: booking, answer });
    let relay = "guarantee = \"at_most_once\"\non_poison = \"dead_letter\"\n";
    let mut replicas = Replicas::start(&impatient(&stage.text(IN_FLIGHT, relay, "deadline = \"3s\"\n")));
    let rows = i64::try_from(ROUNDS).unwrap() * EACH;
    let is_done = async || position(owner).await == Some(rows.to_string());
    let (mut cuts, mut others) = (0, 0);
    for round in 0..ROUNDS {
        book_some_bad(owner, &mut random, (EACH, LANES)).await;
        // A turn is under way.
        let at_least = log.arrivals().len() + 60;
        eventually(PATIENCE * 6, async || log.arrivals().len() >= at_least || is_done().await).await;
        tokio::time::sleep(Duration::from_micros(random.u64(0..30_000))).await;
        let blow = BLOWS[round % BLOWS.len()];
        replicas.strike(blow, (round, random.usize(..storms::REPLICAS)), owner).await;
        if blow.is_cut() {
            cuts += 1;
        } else {
            others += 1;
        }
    }
    log.set(Mood { calm: true, ..Mood::default() });
    eventually(PATIENCE * 12, is_done).await;
    drop(replicas);
    let arrivals = log.arrivals();
    let unknown = ids(owner, "SELECT key[1] FROM outbox.claim WHERE relay = 'h' AND state = 'unknown'").await;
    let dead = ids(owner, "SELECT message_id FROM outbox.dead_letter WHERE cursor = 'h'").await;
    let committed = committed(owner).await;
    let count = |outcome: Outcome| arrivals.iter().filter(|arrival| arrival.outcome == outcome).count();
    let [refused, unclear, hung] = [Outcome::Refused, Outcome::Unclear, Outcome::Hung].map(count);
    let (listed, letters) = (unknown.len(), dead.len());
    println!(
        "{rows} rows, {refused} refused, {unclear} unclear, {hung} hung, {cuts} cuts, {others} other faults; \
         {listed} unknown, {letters} dead"
    );
    // A cut lists all that was reserved; a turn that has taken too long, what was on its way. Dead letters are a list, too.
    let allowed = Allowed { listed: (cuts * RESERVED + others) * IN_FLIGHT + letters, ..Allowed::default() };
    let known = unknown.union(&dead).copied().collect();
    at_most_once(&committed, &arrivals, &known, allowed).acquits(seed);
    assert!(dead.is_disjoint(&unknown), "what was refused for good is not unknown");
    assert!(refused + unclear + hung + cuts + others >= 100, "too few faults to mean something");
}
