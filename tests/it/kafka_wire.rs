//! A broker's answers with error codes that no client lists, and with other bytes than the broker's: nothing is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::support::fuzz::{self, lives};
use crate::support::kafka_proxy::{Absent, Answers, KafkaProxy, Place};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, ids, kafka_relay, toml, unique};

/// Values that are longer than what the proxy needs to spoil a request.
const INSERT: &str = "INSERT INTO bookings (payload) SELECT repeat('v', 400) FROM generate_series(1, $1::int)";

/// 32767 ended the process, as 101 and 120 did or passed for "no error"; −200 is a mark of the client's own list.
const CODES: [i16; 5] = [32_767, 101, 120, -200, -1_000];

/// The error of the only cursor.
async fn last_error(owner: &Client) -> String {
    let sql = "SELECT coalesce(last_error::text, '') FROM outbox.cursor_status";
    owner.query_opt(sql, &[]).await.unwrap().map_or_else(String::new, |row| row.get(0))
}

/// The ids in the order of their first delivery: a process that is killed sends again what it had no time to record.
async fn delivered(servers: &str, topic: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    ids(servers, topic).await.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Each answer of the kind is a lie until the first lies have been told; then the rows arrive.
async fn rows_arrive_after_lies(proxy: &KafkaProxy, place: Place) {
    let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("codes"));
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    let mut process = Process::spawn(&text, &["run"]);
    let mut sent = 0;
    for code in CODES {
        let altered = proxy.altered();
        proxy.answer(Answers::Coded { place, topic: topic.clone(), code });
        if place != Place::Produce {
            // What is asked when a client connects.
            process = Process::spawn(&text, &["run"]);
        }
        owner.execute(INSERT, &[&5]).await.unwrap();
        sent += 5;
        if place == Place::Produce && !(-200..=-100).contains(&code) {
            let error = ["\"kafka_unlisted\"".to_owned(), format!("Unlisted({code})")];
            eventually(PATIENCE, async || {
                let last = last_error(&owner).await;
                !lives(&process) || error.iter().all(|part| last.contains(part))
            })
            .await;
        }
        eventually(PATIENCE, async || proxy.altered() > altered || !lives(&process)).await;
        proxy.answer(Answers::Honest);
        let all_there = async || delivered(&servers, &topic).await.len() >= sent;
        eventually(PATIENCE * 3, async || !lives(&process) || all_there().await).await;
        assert!(lives(&process), "{place:?} {code}: {:?}\n{}", process.wait().await, process.log());
    }
    let arrived = delivered(&servers, &topic).await;
    assert_eq!(arrived, (1..=sent).map(|id| id.to_string()).collect::<Vec<_>>(), "{place:?}");
}

// Guarantee: failures.unlisted-code
#[tokio::test(flavor = "multi_thread")]
async fn rows_outlive_codes_that_no_client_lists() {
    let proxy = KafkaProxy::start().await;
    for place in [Place::Produce, Place::MetadataTopic, Place::MetadataPartition] {
        rows_arrive_after_lies(&proxy, place).await;
    }
}

// Guarantee: failures.unlisted-code
#[tokio::test(flavor = "multi_thread")]
async fn start_outlives_codes_that_no_client_lists() {
    let proxy = KafkaProxy::start().await;
    for place in [Place::Versions, Place::ProducerId, Place::DescribeConfigs] {
        rows_arrive_after_lies(&proxy, place).await;
    }
}

/// An absent array is −1 elements to librdkafka, which sorted and allocated by that number.
async fn rows_arrive_after(proxy: &KafkaProxy, absent: Absent, code: Option<&str>) {
    let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("absent"));
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    let altered = proxy.altered();
    proxy.answer(Answers::Without { absent, topic: topic.clone() });
    let mut process = Process::spawn(&text, &["run"]);
    owner.execute(INSERT, &[&5]).await.unwrap();
    let told = |process: &Process| code.is_none_or(|code| process.log().contains(code));
    eventually(PATIENCE * 2, async || (proxy.altered() > altered && told(&process)) || !lives(&process)).await;
    proxy.answer(Answers::Honest);
    let all_there = async || delivered(&servers, &topic).await.len() == 5;
    eventually(PATIENCE * 3, async || !lives(&process) || all_there().await).await;
    assert!(lives(&process), "{absent:?}: {:?}\n{}", process.wait().await, process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_without_its_lists_does_not_end_the_process() {
    let proxy = KafkaProxy::start().await;
    for absent in [Absent::Brokers, Absent::Topics, Absent::Partitions] {
        rows_arrive_after(&proxy, absent, Some("\"kafka_bad_message\"")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_what_they_always_have_do_not_end_the_process() {
    let proxy = KafkaProxy::start().await;
    rows_arrive_after(&proxy, Absent::RecordErrors, Some("\"kafka_bad_message\"")).await;
    rows_arrive_after(&proxy, Absent::Versions, None).await;
    rows_arrive_after(&proxy, Absent::NameOfConfig, Some("max.message.bytes cannot be read")).await;
}

/// The client says so before it has sent anything: a refusal that waits for an operator, if it is believed.
#[tokio::test(flavor = "multi_thread")]
async fn garbled_list_of_versions_does_not_halt() {
    let proxy = KafkaProxy::start().await;
    let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("versions"));
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    proxy.answer(Answers::NotIdempotent);
    let process = Process::spawn(&text, &["run"]);
    owner.execute(INSERT, &[&5]).await.unwrap();
    eventually(PATIENCE * 2, async || last_error(&owner).await.contains("\"kafka_unsupported_feature\"")).await;
    proxy.answer(Answers::Honest);
    let halted = "SELECT coalesce(bool_or(halted), false) FROM outbox.cursor_status";
    let halted = async || owner.query_one(halted, &[]).await.unwrap().get::<_, bool>(0);
    let arrived = async || delivered(&servers, &topic).await.len() == 5;
    eventually(PATIENCE * 3, async || halted().await || arrived().await).await;
    assert!(!halted().await, "{}", process.log());
}

// Guarantee: failures.unlisted-code
/// The broker stores the first record and refuses the second. A client that goes by correlation ids alone takes both for stored: what
/// it retries is the first, which the broker has.
#[tokio::test(flavor = "multi_thread")]
async fn rows_outlive_swapped_answers_of_broker() {
    let proxy = KafkaProxy::start().await;
    let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("swapped"));
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    let process = Process::spawn(&text, &["run"]);
    let is_at = async |id: &str| {
        let sql = "SELECT coalesce(max(position_id), '') FROM outbox.cursor";
        owner.query_one(sql, &[]).await.unwrap().get::<_, String>(0) == id
    };
    // A new producer sends its first record alone.
    owner.execute(INSERT, &[&1]).await.unwrap();
    eventually(PATIENCE * 2, async || is_at("1").await).await;
    proxy.swap();
    // Too long for one request together.
    let insert = "INSERT INTO bookings (payload) SELECT string_agg(md5(row || '.' || piece), '') \
                  FROM generate_series(1, 2) AS row, generate_series(1, 20000) AS piece GROUP BY row ORDER BY row";
    owner.batch_execute(insert).await.unwrap();
    eventually(PATIENCE * 2, async || proxy.altered() > 0 || !lives(&process)).await;
    eventually(PATIENCE * 3, async || is_at("3").await).await;
    assert_eq!((proxy.altered(), proxy.spoiled()), (1, 1));
    assert_eq!(delivered(&servers, &topic).await, ["1", "2", "3"], "{}", process.log());
}

/// Starts it again when it has ended by itself, which no answer may bring about (docs/adr/0029); how it was is kept.
async fn start_again(process: &mut Process, text: &str, ends: &mut Vec<String>) {
    if lives(process) {
        return;
    }
    let (ended, log) = (process.ended().await, process.log());
    let told = log.lines().filter(|line| line.contains("\"relay halted\"") || line.contains("panicked"));
    ends.push(told.chain(log.lines().last()).fold(ended.to_string(), |all, line| format!("{all}: {line}")));
    *process = Process::spawn(text, &["run"]);
}

// Guarantee: failures.unlisted-code
/// Two replicas, one of them started again and again, for a while behind a proxy that changes bytes.
#[tokio::test(flavor = "multi_thread")]
async fn rows_outlive_garbled_answers_of_broker() {
    let (seed, lasts) = (fuzz::seed(), fuzz::lasts());
    let proxy = KafkaProxy::start().await;
    let (servers, topic) = (proxy.broker.bootstrap_servers(), unique("garbled"));
    proxy.broker.create_topic(&topic, 1, &[]).await.unwrap();
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&proxy.servers()), &kafka_relay("events", &topic, ""));
    // An answer that never ends is waited for so long.
    let text = text.replace("[admin]", "[kafka.properties]\n\"socket.timeout.ms\" = 3000\n[admin]");
    let mut first = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    proxy.answer(Answers::Garbled(fastrand::Rng::with_seed(seed)));
    let (end, mut sent, mut ends, mut panics) = (Instant::now() + lasts, 0, Vec::new(), 0);
    while Instant::now() < end {
        let mut second = Process::spawn(&text, &["run", "--replica-id", "r2"]);
        for _ in 0..20 {
            sent += owner.execute(INSERT, &[&10]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            for process in [&mut first, &mut second] {
                start_again(process, &text, &mut ends).await;
            }
        }
        panics += usize::from(second.log().contains("panicked"));
    }
    let altered = proxy.altered();
    proxy.answer(Answers::Honest);
    assert!(altered > 10, "{altered} answers were garbled");
    tokio::time::sleep(Duration::from_millis(100)).await;
    start_again(&mut first, &text, &mut ends).await;
    let rows = usize::try_from(sent).unwrap();
    let distinct = async || delivered(&servers, &topic).await.len();
    let arrived = tokio::time::timeout(PATIENCE * 6, async {
        while lives(&first) && distinct().await < rows {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let arrived = arrived.await.is_ok() && lives(&first);
    println!("seed {seed}: {altered} answers garbled, {rows} rows, {} ends of a process: {ends:#?}", ends.len());
    let (found, error) = (delivered(&servers, &topic).await, last_error(&owner).await);
    let halts = "SELECT coalesce(bool_or(halted), false) FROM outbox.cursor_status";
    println!("halted: {}", owner.query_one(halts, &[]).await.unwrap().get::<_, bool>(0));
    assert!(arrived, "seed {seed}: {} of {rows}; {error}\n{}", found.len(), first.log());
    let in_order = found.iter().zip(1..).find(|(found, id)| **found != id.to_string());
    assert_eq!(in_order, None, "seed {seed}: in another order");
    panics += usize::from(first.log().contains("panicked"));
    assert!(ends.is_empty() && panics == 0, "seed {seed}: {} ends, {panics} panics", ends.len());
}
