//! `on_poison = "park_key"`: a message that is never accepted parks its key, and no other key waits.

mod changes;
mod hostile;
mod limits;
mod operators;
mod storm;

use serde_json::Value;
use tokio_postgres::Client;

use crate::poison::limit;
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::json;
use crate::support::receiver::{Receiver, Request};
use crate::support::{
    CLOCK, Database, PATIENCE, Record, Replica, bookings, broker, config, database, eventually, kafka_relay,
    outbox_relay, records, toml, unique,
};

/// Rows of a customer, with these payloads, in order.
async fn book(owner: &Client, customer: &str, payloads: &[&str]) {
    let sql = "INSERT INTO bookings (customer, payload) SELECT $1, p FROM unnest($2::text[]) WITH ORDINALITY AS u(p, n) ORDER BY n";
    owner.execute(sql, &[&customer, &payloads]).await.unwrap();
}

/// A receiver that refuses every message with this word in it.
fn refusing(word: &'static str) -> Receiver {
    let receiver = Receiver::start();
    receiver.answer(refuse(word));
    receiver
}

fn refuse(word: &'static str) -> impl Fn(&Request) -> (u16, std::time::Duration) + Send + 'static {
    move |request| (if request.body.contains(word) { 422 } else { 200 }, std::time::Duration::ZERO)
}

/// An HTTP relay that parks keys by the column `customer`.
fn http(receiver: &Receiver, more: &str) -> String {
    let relay = receiver.relay("h", &format!("on_poison = \"park_key\"\n{more}"));
    format!("{relay}[relay.turn]\nlane = \"customer\"\nrows = 50\n")
}

/// The parked rows of a cursor by key, each with its id, in order.
async fn parked(owner: &Client, cursor: &str) -> Vec<(String, String)> {
    let sql = "SELECT key, message_id FROM outbox.parked WHERE cursor = $1 ORDER BY key, created_at, seq";
    owner.query(sql, &[&cursor]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn no_key_is_parked(owner: &Client) -> bool {
    let sql = "SELECT (SELECT count(*) FROM outbox.parked_key) + (SELECT count(*) FROM outbox.parked)";
    owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0
}

async fn cursors(text: &str) -> Value {
    let (code, out, log) = outbox_relay(text, &["status", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    json(&out)["cursors"].clone()
}

async fn verb(text: &str, args: &[&str]) {
    let (code, out, log) = outbox_relay(text, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{log}");
}

fn pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, id)| ((*key).to_owned(), (*id).to_owned())).collect()
}

struct Stage {
    database: Database,
    owner: Client,
    receiver: Receiver,
    text: String,
    replica: Replica,
}

/// A relay that has parked the keys `a` (rows 2, 4 and 6) and `b` (row 5); 1 and 3 were delivered.
async fn stage() -> Stage {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, ""));
    for (customer, payload) in [("c", "1"), ("a", "bad"), ("c", "3"), ("a", "4"), ("b", "bad"), ("a", "6")] {
        book(&owner, customer, &[payload]).await;
    }
    let replica = Replica::start(&crate::support::relays::parse(&text), "r1");
    let expected = pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("b", "5")]);
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == expected).await;
    assert_eq!(receiver.accepted("h"), ["1", "3"]);
    Stage { database, owner, receiver, text, replica }
}

// Guarantee: parked.others
// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_parks_its_key_and_no_other_waits_until_it_is_redriven() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    let status = cursors(&text).await;
    assert_eq!((&status[0]["parked_keys"], &status[0]["dead_letters"]), (&2.into(), &2.into()), "{status}");
    let (_, out, _) = outbox_relay(&text, &["dead-letter", "list", "-o", "json"]).await;
    let letters = json(&out)["dead_letters"].as_array().unwrap().clone();
    let shown: Vec<_> = letters.iter().map(|letter| (letter["key"].clone(), letter["parked_rows"].clone())).collect();
    assert_eq!(shown, [(vec!["2"].into(), 3.into()), (vec!["5"].into(), 1.into())], "{out}");
    book(&owner, "c", &["7"]).await;
    book(&owner, "a", &["8"]).await;
    book(&owner, "d", &["9"]).await;
    eventually(PATIENCE, async || receiver.accepted("h") == ["1", "3", "7", "9"]).await;
    eventually(PATIENCE, async || parked(&owner, "h").await.len() == 5).await;

    receiver.answer(refuse("nothing"));
    let id = letters[0]["id"].to_string();
    verb(&text, &["dead-letter", "redrive", &id, "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "7", "9", "2", "4", "6", "8"]).await;
    let replayed =
        |id: &str| receiver.requests().iter().any(|request| request.key == format!("h/{id}") && request.replayed);
    assert!(["2", "4", "6", "8"].iter().all(|id| replayed(id)), "each of them is marked");
    eventually(PATIENCE, async || parked(&owner, "h").await == pairs(&[("b", "5")])).await;
    book(&owner, "a", &["10"]).await;
    eventually(PATIENCE, async || receiver.accepted("h").last().is_some_and(|id| id == "10")).await;
    assert!(!replayed("10"), "the key is one like others again");

    let (code, ..) = outbox_relay(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    assert_eq!(code, Some(0));
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    let status = cursors(&text).await;
    assert_eq!((&status[0]["parked_keys"], &status[0]["dead_letters"]), (&0.into(), &0.into()), "{status}");
    assert!(!receiver.accepted("h").contains(&"5".to_owned()), "it was given up");
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_discarded_message_lets_the_rest_of_its_key_go_in_order() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    let id: i64 =
        owner.query_one("SELECT id FROM outbox.dead_letter WHERE message_id = '2'", &[]).await.unwrap().get(0);
    verb(&text, &["dead-letter", "discard", &id.to_string(), "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "4", "6"]).await;
    eventually(PATIENCE, async || parked(&owner, "h").await == pairs(&[("b", "5")])).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_released_row_that_is_refused_is_what_its_key_waits_for_next() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    book(&owner, "a", &["worse", "8", "worse", "10"]).await;
    eventually(PATIENCE, async || parked(&owner, "h").await.len() == 8).await;
    receiver.answer(refuse("worse"));
    let letters = async || {
        let sql = "SELECT message_id FROM outbox.dead_letter WHERE state = 'dead' AND key = 'a'";
        let rows = owner.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || letters().await == ["7"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "2", "5", "4", "6"]);
    let waiting = pairs(&[("a", "7"), ("a", "8"), ("a", "9"), ("a", "10")]);
    assert_eq!(parked(&owner, "h").await, waiting);
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || letters().await == ["9"]).await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "2", "5", "4", "6", "8", "9", "10"]).await;
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

// Guarantee: parked.others
// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn at_kafka_the_records_key_is_parked_and_each_key_keeps_its_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("parked");
    broker().await.create_topic(&topic, 3, &[]).await.unwrap();
    let relays = kafka_relay("k", &topic, "on_poison = \"park_key\"");
    let servers = broker().await.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &relays);
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");
    book(&owner, "c", &["first"]).await;
    eventually(PATIENCE, async || records(&servers, &topic).await.len() == 1).await;
    limit(&topic, "20000").await;
    let fill = "INSERT INTO bookings (customer, payload) SELECT 'k' || n % 10, repeat('x', CASE n WHEN 303 THEN 30000 ELSE 50 END) \
                FROM generate_series(2, 600) AS n";
    owner.batch_execute(fill).await.unwrap();
    let waiting = async || parked(&owner, "k").await.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    let of_key = |from: i64| {
        (2..=600).filter(move |n| n % 10 == 3 && *n >= from).map(|n: i64| n.to_string()).collect::<Vec<_>>()
    };
    eventually(PATIENCE * 4, async || waiting().await == of_key(303)).await;
    let others = 600 - of_key(303).len();
    eventually(PATIENCE * 2, async || records(&servers, &topic).await.len() >= others).await;

    // Parked rows wait, and are not missing; and no repair sends them ahead of the one that they wait for.
    let (code, out, log) = outbox_relay(&text, &["verify", "k", "--repair", "--yes", "-o", "json"]).await;
    let kinds = json(&out)["differences"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect::<Vec<_>>();
    assert!(code.is_some_and(|code| code != 1) && !kinds.contains(&"not_in_topic".into()), "{code:?} {out}{log}");
    let letters: i64 = owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap().get(0);
    assert_eq!((letters, waiting().await), (1, of_key(303)), "{out}");

    limit(&topic, "1000000").await;
    verb(&text, &["dead-letter", "redrive", "--cursor", "k", "--yes"]).await;
    eventually(PATIENCE * 4, async || no_key_is_parked(&owner).await).await;
    let all = records(&servers, &topic).await;
    // What was on its way in other partitions when the record was refused comes again: what counts is who came first.
    let mut seen = std::collections::BTreeSet::new();
    let firsts: Vec<&Record> = all.iter().filter(|record| seen.insert(record.id())).collect();
    let of: Vec<&&Record> = firsts.iter().filter(|record| record.id().parse::<i64>().unwrap() % 10 == 3).collect();
    assert_eq!(of.iter().map(|record| record.id()).collect::<Vec<_>>(), of_key(2), "the key's rows, in order");
    let parked_since = |record: &Record| record.id().parse::<i64>().unwrap() >= 303;
    assert!(of.iter().all(|record| (record.header("replayed") == Some("true")) == parked_since(record)));
    let distinct: std::collections::BTreeSet<&str> = all.iter().map(Record::id).collect();
    assert_eq!(distinct.len(), 600, "nothing is missing");
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn messages_to_one_number_wait_for_the_one_that_was_refused_and_others_do_not() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text").await.unwrap();
    let gateway = Gateway::start().await;
    gateway.set(Mood::Refuse(400, r#"{"code":21211,"message":"not valid"}"#));
    let relays = sms_relay("sms", &gateway, "").replacen("start =", "on_poison = \"park_key\"\nstart =", 1);
    let text = toml(&database, "relay", None, &relays);
    let to = async |phone: &str| {
        owner.execute("INSERT INTO bookings (phone) VALUES ($1)", &[&phone]).await.unwrap();
    };
    to("+1111").await;
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    eventually(PATIENCE * 2, async || parked(&owner, "sms").await == pairs(&[("+1111", "1")])).await;
    gateway.set(Mood::Accept);
    to("+1111").await;
    to("+2222").await;
    eventually(PATIENCE * 2, async || gateway.accepted() == ["3"]).await;
    eventually(PATIENCE, async || parked(&owner, "sms").await.len() == 2).await;
    verb(&text, &["dead-letter", "redrive", "--cursor", "sms", "--yes"]).await;
    eventually(PATIENCE * 2, async || gateway.accepted() == ["3", "1", "2"]).await;
    replica.stop().await;
}
