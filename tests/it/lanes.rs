//! `[relay.turn] in_flight`: messages of different lanes are sent side by side, those of one lane in order.

pub mod checker;
mod failures;
mod jobs;
mod model;
mod moves;
mod once;
mod once_storm;
mod planted;
mod refusals;
mod sinks;
mod storm;
pub mod storms;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use self::checker::Committed;
use crate::support::receiver::{Receiver, Request};
use crate::support::relays::parse;
use crate::support::{CLOCK, Database, PATIENCE, Process, Replica, bookings, database, eventually, toml};

/// An HTTP relay whose lanes are the customers.
fn lanes(receiver: &Receiver, in_flight: usize, more: &str, turn: &str) -> String {
    let relay =
        receiver.relay("h", more).replace("body = \"{{ payload }}\"", "body = \"{{ customer }} {{ payload }}\"");
    format!("{relay}[relay.turn]\nin_flight = {in_flight}\nlane = \"customer\"\n{turn}\n")
}

/// So many rows, one for each customer in turn.
async fn book(owner: &Client, rows: i64, customers: i64) {
    let sql =
        "INSERT INTO bookings (customer, payload) SELECT 'k' || n % $2, 'p' FROM generate_series(1, $1::bigint) AS n";
    owner.execute(sql, &[&rows, &customers]).await.unwrap();
}

async fn one(owner: &Client, customer: &str) -> String {
    let sql = "INSERT INTO bookings (customer, payload) VALUES ($1, 'p') RETURNING id::text";
    owner.query_one(sql, &[&customer]).await.unwrap().get(0)
}

/// The customer of a request.
fn customer(request: &Request) -> &str {
    request.body.split(' ').next().unwrap()
}

/// Answers with this status to this customer, and accepts everything else, each after this long.
fn refuse(whom: &'static str, status: u16, pause: Duration) -> impl Fn(&Request) -> (u16, Duration) + Send + 'static {
    move |request| (if customer(request) == whom { status } else { 200 }, pause)
}

async fn ahead(owner: &Client) -> i64 {
    owner.query_one("SELECT count(*) FROM outbox.ahead", &[]).await.unwrap().get(0)
}

async fn position(owner: &Client) -> Option<String> {
    let sql = "SELECT position_id FROM outbox.cursor WHERE name = 'h'";
    owner.query_opt(sql, &[]).await.unwrap().and_then(|row| row.get(0))
}

/// The customer of each row.
async fn committed(owner: &Client) -> Committed {
    let rows = owner.query("SELECT id, customer FROM bookings", &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The accepted ids by customer, in the order of their first acceptance.
fn by_customer(receiver: &Receiver) -> BTreeMap<String, Vec<i64>> {
    let (mut seen, mut by) = (BTreeSet::new(), BTreeMap::<String, Vec<i64>>::new());
    for request in receiver.requests().iter().filter(|request| request.status == 200) {
        let id: i64 = request.key.strip_prefix("h/").unwrap().parse().unwrap();
        if seen.insert(id) {
            by.entry(customer(request).to_owned()).or_default().push(id);
        }
    }
    by
}

fn in_order(receiver: &Receiver) {
    for (customer, ids) in by_customer(receiver) {
        assert!(ids.is_sorted(), "{customer}: {ids:?}");
    }
}

/// Each of so many rows was accepted, and none twice.
fn each_once(receiver: &Receiver, rows: usize) {
    let accepted = receiver.accepted("h");
    let distinct: BTreeSet<&String> = accepted.iter().collect();
    assert_eq!((accepted.len(), distinct.len()), (rows, rows), "accepted, distinct");
}

struct Stage {
    database: Database,
    owner: Client,
    receiver: Receiver,
}

impl Stage {
    async fn new() -> Self {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        Self { database, owner, receiver: Receiver::start() }
    }

    fn text(&self, in_flight: usize, more: &str, turn: &str) -> String {
        toml(&self.database, "relay", None, &lanes(&self.receiver, in_flight, more, turn))
    }
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn lanes_run_side_by_side_and_each_in_order() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(20)));
    book(&stage.owner, 300, 30).await;
    let replica = Replica::start(&parse(&stage.text(10, "", "")), "r1");
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("300")).await;
    replica.stop().await;
    each_once(&stage.receiver, 300);
    in_order(&stage.receiver);
    let requests = stage.receiver.requests();
    let most = requests.iter().map(|request| request.at_once).max().unwrap();
    assert!((5..=10).contains(&most), "{most} at a time");
    // Of one lane the next begins when the one before it has been answered.
    for customer in (0..30).map(|n| format!("k{n}")) {
        let begun: Vec<_> =
            requests.iter().filter(|request| self::customer(request) == customer).map(|r| r.at).collect();
        for pair in begun.windows(2) {
            assert!(pair[1].duration_since(pair[0]).unwrap() >= Duration::from_millis(20), "{customer}: two at a time");
        }
    }
    assert_eq!(ahead(&stage.owner).await, 0);
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn rows_without_lane_share_one() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(5)));
    let rows = "ALTER TABLE bookings ALTER customer DROP NOT NULL; INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 20)";
    stage.owner.batch_execute(rows).await.unwrap();
    let replica = Replica::start(&parse(&stage.text(10, "", "")), "r1");
    eventually(PATIENCE * 2, async || stage.receiver.accepted("h").len() == 20).await;
    replica.stop().await;
    assert!(stage.receiver.requests().iter().all(|request| request.at_once == 1));
    in_order(&stage.receiver);
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn lane_of_an_sms_is_its_number_unless_another_is_named() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(20)));
    let numbers =
        "INSERT INTO bookings (customer, payload) SELECT '+1555000000' || n % 5, 'p' FROM generate_series(1, 50) AS n";
    stage.owner.batch_execute(numbers).await.unwrap();
    let sms = stage.receiver.sms("h", "").replace("to = \"+15551234567\"", "to = \"{{ customer }}\"");
    let text = toml(&stage.database, "relay", None, &format!("{sms}[relay.turn]\nin_flight = 20\n"));
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("50")).await;
    replica.stop().await;
    each_once(&stage.receiver, 50);
    let most = stage.receiver.requests().iter().map(|request| request.at_once).max().unwrap();
    assert!((2..=5).contains(&most), "one for each number: {most}");
    let ids: Vec<i64> = stage.receiver.accepted("h").iter().map(|id| id.parse().unwrap()).collect();
    for number in 0..5 {
        assert!(ids.iter().filter(|id| **id % 5 == number).is_sorted(), "{ids:?}");
    }
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_beyond_a_waiting_lane_is_never_sent_again() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    let first = one(owner, "a").await;
    let second = one(owner, "a").await;
    book(owner, 200, 20).await;
    let text = stage.text(8, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 200).await;
    book(owner, 50, 20).await;
    eventually(PATIENCE, async || receiver.accepted("h").len() == 250).await;
    replica.stop().await;
    assert_eq!(position(owner).await, None, "the first row was not accepted");
    assert_eq!(ahead(owner).await, 250);

    let replica = Replica::start(&parse(&text), "r2");
    book(owner, 1, 20).await;
    eventually(PATIENCE, async || receiver.accepted("h").len() == 251).await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("253")).await;
    eventually(PATIENCE, async || ahead(owner).await == 0 || one(owner, "z").await.is_empty()).await;
    replica.stop().await;
    in_order(receiver);
    let accepted = receiver.accepted("h");
    let distinct: BTreeSet<_> = accepted.iter().collect();
    assert_eq!(accepted.len(), distinct.len(), "each once");
    assert_eq!(by_customer(receiver)["a"], [first.parse::<i64>().unwrap(), second.parse().unwrap()]);
    let asked = receiver.requests().iter().filter(|request| customer(request) == "a" && request.status == 503).count();
    assert!((2..60).contains(&asked), "retried with pauses: {asked}");
}

// Guarantee: lanes.crash
#[tokio::test(flavor = "multi_thread")]
async fn kill_repeats_no_more_than_was_in_flight() {
    const IN_FLIGHT: usize = 8;
    const KILLS: usize = 6;
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(fastrand::u64(2..30))));
    book(owner, 3_000, 100).await;
    let text = stage.text(IN_FLIGHT, "", "");
    for kill in 1..=KILLS {
        let mut replica = Process::spawn(&text, &["run", "--replica-id", &format!("r{kill}")]);
        let at_least = receiver.accepted("h").len() + 150;
        eventually(PATIENCE * 2, async || receiver.accepted("h").len() >= at_least).await;
        replica.signal(Signal::KILL);
        replica.wait().await;
    }
    let replica = Replica::start(&parse(&text), "last");
    eventually(PATIENCE * 6, async || position(owner).await.as_deref() == Some("3000")).await;
    replica.stop().await;
    let accepted = receiver.accepted("h");
    let distinct: BTreeSet<_> = accepted.iter().collect();
    assert_eq!(distinct.len(), 3_000, "lost");
    let repeated = accepted.len() - distinct.len();
    println!("{repeated} repeated by {KILLS} kills");
    assert!(repeated <= IN_FLIGHT * KILLS, "{repeated} repeated");
    in_order(receiver);
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn without_in_flight_rows_that_were_acknowledged_ahead_are_passed_or_refused() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 20, 10).await;
    let replica = Replica::start(&parse(&stage.text(4, "", "")), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 20).await;
    replica.stop().await;
    receiver.answer(|_| (200, Duration::ZERO));
    let one_by_one = stage.text(4, "", "").replace("in_flight = 4\nlane = \"customer\"\n", "");
    let replica = Replica::start(&parse(&one_by_one), "r2");
    one(owner, "b").await;
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("22")).await;
    replica.stop().await;
    each_once(receiver, 22);
    assert_eq!(ahead(owner).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ahead_goes_with_a_cursor_that_is_renamed_or_removed() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 20, 10).await;
    let text = stage.text(4, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 20).await;
    replica.stop().await;
    owner.batch_execute("UPDATE outbox.cursor SET name = 'other' WHERE name = 'h'").await.unwrap();
    let names = "SELECT count(*) FROM outbox.ahead WHERE cursor = 'other'";
    assert_eq!(owner.query_one(names, &[]).await.unwrap().get::<_, i64>(0), 20);
    owner.batch_execute("DELETE FROM outbox.cursor WHERE name = 'other'").await.unwrap();
    assert_eq!(ahead(owner).await, 0);
}
