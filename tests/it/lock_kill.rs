//! PostgreSQL takes the lock from a holder that is silent, and never from one that is only slow.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use outbox_relay::cli::run::limits;
use outbox_relay::database::Sessions;
use outbox_testkit::postgres::{Options, Postgres};
use rustix::process::Signal;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::relays::{parse, toml_of};
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Process, Replica, bookings, config, database, eventually, toml};

/// The lock kill is 12/5 of it.
const DEADLINE: &str = "[relay.turn]\ndeadline = \"2s\"\n";
/// What the server's log calls the settings that the lock kill is made of.
const KILLS: [&str; 2] = ["due to transaction timeout", "due to idle-in-transaction timeout"];

async fn phones(database: &Database) -> tokio_postgres::Client {
    let owner = bookings(database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    owner
}

fn kills(log: &str, pid: Option<i32>) -> Vec<&str> {
    let of_pid = |line: &&str| pid.is_none_or(|pid| line.contains(&format!("[{pid}]")));
    log.lines().filter(of_pid).filter(|line| KILLS.iter().any(|kill| line.contains(kill))).collect()
}

// Guarantee: failures.lock-kill
#[tokio::test]
async fn every_limit_of_a_session_reads_back_as_it_was_set() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let config = config(&database, "relay", None, &sms_relay("sms", &gateway, DEADLINE));
    let limits = limits(&config.relays);
    assert_eq!(limits.lock_kill, Duration::from_millis(4_800));
    let session = Sessions::new(config.postgres.clone(), limits, "outbox-relay/test".to_owned()).open().await.unwrap();
    let shown = async |name: &str| -> String { session.query_one(&format!("SHOW {name}"), &[]).await.unwrap().get(0) };
    assert_eq!(shown("idle_in_transaction_session_timeout").await, "4800ms");
    assert_eq!(shown("tcp_user_timeout").await, "4800"); // shown without its unit, which is ms
    assert_eq!(shown("statement_timeout").await, "1200ms");
    if shown("server_version_num").await.parse::<u32>().unwrap() >= 170_000 {
        assert_eq!(shown("transaction_timeout").await, "4800ms");
    }
}

// Guarantee: failures.lock-kill
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_holder_loses_the_lock_and_another_replica_goes_on() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = phones(&database).await;
    gateway.set(Mood::Hang);
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, DEADLINE));
    let frozen = Process::spawn(&text, &["run", "--replica-id", "frozen"]);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    // While the first request hangs, the lock is held; the time-out of the request is 1.2 s away.
    eventually(PATIENCE, || async { !gateway.asked().is_empty() }).await;
    frozen.signal(Signal::STOP);
    let asleep = Instant::now();
    let holder: i32 = owner.query_one("SELECT holder_pid FROM outbox.status", &[]).await.unwrap().get(0);
    let healthy = Process::spawn(&text, &["run", "--replica-id", "healthy"]);
    gateway.set(Mood::Accept);
    eventually(PATIENCE * 2, || async {
        owner.query("SELECT FROM pg_stat_activity WHERE pid = $1", &[&holder]).await.unwrap().is_empty()
    })
    .await;
    println!("the lock was gone after {:?}", asleep.elapsed());
    assert!(asleep.elapsed() > Duration::from_secs(2), "a turn's own deadline comes first");
    let log = std::fs::read_to_string(database.postgres.log()).unwrap();
    assert_eq!(kills(&log, Some(holder)).len(), 1, "PostgreSQL itself ended the session");
    println!("{}", kills(&log, Some(holder))[0]);
    eventually(PATIENCE * 2, || async { gateway.accepted() == ["1"] }).await;
    eventually(PATIENCE, || async {
        let by =
            owner.query_one("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap().get::<_, Option<String>>(0);
        by.as_deref() == Some("healthy")
    })
    .await;
    frozen.signal(Signal::CONT);
    drop((frozen, healthy));
}

// Guarantee: failures.lock-kill
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_but_live_holder_keeps_its_lock() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let gateway = Gateway::start().await;
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    owner
        .batch_execute(&format!(
            "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, phone text \
             DEFAULT '+1'); CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay; \
             INSERT INTO bookings (phone) SELECT '+1' FROM generate_series(1, 12)"
        ))
        .await
        .unwrap();
    // Twelve answers of 700 ms are more than a turn of 2 s may last, and three turns last longer than the lock kill.
    gateway.set(Mood::Slow(Duration::from_millis(700)));
    let turn = "[relay.turn]\ndeadline = \"2s\"\nrows = 12\n";
    let relay = sms_relay("sms", &gateway, turn);
    let config = parse(&toml_of(&postgres.url("relay", "template_outbox"), None, &relay));
    let replicas = [Replica::start(&config, "r1"), Replica::start(&config, "r2")];
    let first = || {
        let mut seen = BTreeSet::new();
        gateway.accepted().into_iter().filter(|id| seen.insert(id.clone())).collect::<Vec<_>>()
    };
    eventually(PATIENCE * 6, || async { first().len() == 12 }).await;
    let expected: Vec<String> = (1..=12).map(|id| id.to_string()).collect();
    assert_eq!(first(), expected);
    for replica in replicas {
        replica.stop().await;
    }
    let log = std::fs::read_to_string(postgres.log()).unwrap();
    assert!(kills(&log, None).is_empty(), "{:?}", kills(&log, None));
    postgres.stop().await.unwrap();
}
