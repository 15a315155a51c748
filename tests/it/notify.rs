//! Hints by LISTEN/NOTIFY: they wake at once, and without them rows are found all the same.

use std::time::Duration;

use outbox_testkit::consumer::Consumer;
use outbox_testkit::kafka::RealBroker;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, printed, stdout_relay};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, database, eventually, kafka_relay, outbox_relay, toml, unique,
};

const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";
const LISTENERS: &str =
    "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN \"outbox_relay\"' AND datname = current_database()";

/// Makes a relay look rarely, unless it is woken: less often than anybody waits here.
const SLEEPY: &str = "[relay.poll]\nmin = \"30s\"\nmax = \"60s\"\n";

fn sleepy(notify: bool) -> String {
    format!("{}{SLEEPY}notify = {notify}\n", stdout_relay("woken", ""))
}

async fn prints(process: &Process, rows: usize) {
    eventually(PATIENCE, async || printed(process, "woken").len() >= rows).await;
    let ids: Vec<String> = (1..=rows).map(|id| id.to_string()).collect();
    assert_eq!(printed(process, "woken"), ids);
}

async fn listeners(owner: &Client) -> Vec<i32> {
    owner.query(LISTENERS, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Has the trigger made as an operator does.
async fn install(database: &Database) {
    let (code, out, err) =
        outbox_relay(&toml(database, "postgres", None, &sleepy(true)), &["migrate", "up", "--notify"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON \"public\".\"bookings\""), "{out}");
}

/// A process that has printed row 1 and looked once more, so that its next look is far away.
async fn asleep(database: &Database, owner: &Client) -> Process {
    owner.batch_execute(INSERT).await.unwrap();
    let process = Process::spawn(&toml(database, "relay", None, &sleepy(true)), &["run"]);
    prints(&process, 1).await;
    eventually(PATIENCE, async || listeners(owner).await.len() == 1).await;
    // It looks once more when its turn has ended, which nothing tells of: a look that took longer would weaken what hints
    // prove here, and fail nothing.
    tokio::time::sleep(Duration::from_secs(1)).await;
    process
}

// Guarantee: delivery.notifications
#[tokio::test]
async fn a_hint_wakes_a_relay_whose_next_look_is_far_away() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    install(&database).await;
    let process = asleep(&database, &owner).await;
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_comes_during_a_relays_turn_is_heard_when_the_turn_has_ended() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    install(&database).await;
    let broker = RealBroker::start().await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("busy"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let consumer = Consumer::start(&servers, &topic).await.unwrap();
    let relays = sleepy(true) + &kafka_relay("busy", &topic, "") + SLEEPY + "notify = true\n";
    let process = Process::spawn(&toml(&database, "relay", Some(&servers), &relays), &["run"]);
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 1).await;
    eventually(PATIENCE, async || consumer.count() == 1).await;
    broker.freeze().unwrap();
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 2).await;
    // The other's turn hangs with row 2: what has no turn hears this.
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 3).await;
    broker.thaw().unwrap();
    // Less than the shortest pause between two polls. On a busy machine the broker may have been frozen for longer than a turn
    // lasts: then the client's and the relay's pauses after a failure come first.
    eventually(PATIENCE * 2, async || consumer.count() >= 3).await;
    broker.stop().await.unwrap();
}

#[tokio::test]
async fn the_hint_of_a_late_committer_brings_its_row_and_those_behind_it_in_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    install(&database).await;
    let process = asleep(&database, &owner).await;
    let late = database.connect("app").await;
    late.batch_execute(&format!("BEGIN; {INSERT}")).await.unwrap();
    owner.batch_execute(INSERT).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(printed(&process, "woken").len(), 1);
    late.batch_execute("COMMIT").await.unwrap();
    prints(&process, 3).await;
}

// Guarantee: delivery.notifications
#[tokio::test]
async fn without_the_trigger_rows_are_found_by_polling_and_check_says_so() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let polling = sleepy(true).replace("30s", "1ms").replace("60s", "200ms");
    let text = toml(&database, "relay", None, &polling);
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let missing = finding(&document, "notify_trigger_missing").unwrap_or_else(|| panic!("{out}"));
    assert_eq!(missing["level"], "warn");
    let process = Process::spawn(&text, &["run"]);
    for rows in 1..4 {
        owner.batch_execute(INSERT).await.unwrap();
        prints(&process, rows).await;
    }
    owner.batch_execute(missing["fix_sql"].as_str().unwrap()).await.unwrap();
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(finding(&json(&out), "notify_trigger").unwrap()["level"], "ok");
    owner.batch_execute("ALTER TABLE bookings DISABLE TRIGGER outbox_notify").await.unwrap();
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "notify_trigger_missing").is_some(), "{out}");
}

// Guarantee: delivery.notifications
#[tokio::test]
async fn a_listener_that_is_cut_comes_back_and_no_row_is_lost() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    install(&database).await;
    let process = asleep(&database, &owner).await;
    let before = listeners(&owner).await;
    owner.execute("SELECT pg_terminate_backend($1)", &[&before[0]]).await.unwrap();
    // Notified while nobody hears: the listener that comes back has everybody look.
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 2).await;
    eventually(PATIENCE, async || listeners(&owner).await.first().is_some_and(|pid| *pid != before[0])).await;
    owner.batch_execute(INSERT).await.unwrap();
    prints(&process, 3).await;
}

#[tokio::test]
async fn a_replica_listens_on_one_connection_only_when_a_relay_asks_and_within_its_pool_size() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(INSERT).await.unwrap();
    let quiet = Process::spawn(&toml(&database, "relay", None, &sleepy(false)), &["run"]);
    prints(&quiet, 1).await;
    assert!(listeners(&owner).await.is_empty());
    drop(quiet);
    // The six below are no renamed one.
    owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap();
    let relays: String =
        (0..6).map(|n| format!("{}[relay.poll]\nnotify = true\n", stdout_relay(&format!("r{n}"), ""))).collect();
    let text = toml(&database, "relay", None, &relays).replacen('\n', "\npool_size = 5\n", 1);
    let process = Process::spawn(&text, &["run", "--replica-id", "five"]);
    for n in 0..6 {
        eventually(PATIENCE, async || printed(&process, &format!("r{n}")).len() == 1).await;
    }
    assert_eq!(listeners(&owner).await.len(), 1);
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outbox-relay/five' AND datname = current_database()";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 5);
}

#[tokio::test]
async fn the_trigger_forbids_prepared_transactions_and_migrate_makes_and_keeps_it_only_when_asked() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "postgres", None, &sleepy(true));
    let (code, sql, _) = outbox_relay(&text, &["migrate", "up", "--print-sql"]).await;
    assert_eq!(code, Some(0));
    assert!(!sql.contains("CREATE OR REPLACE TRIGGER"), "{sql}");
    let (_, sql, _) = outbox_relay(&text, &["migrate", "up", "--notify", "--print-sql"]).await;
    assert!(sql.contains("CREATE OR REPLACE TRIGGER outbox_notify"), "{sql}");
    let (code, _, err) =
        outbox_relay(&toml(&database, "postgres", None, &sleepy(false)), &["migrate", "up", "--notify"]).await;
    assert_eq!((code, err.trim()), (Some(1), "error: --notify: no relay has [relay.poll] notify = true"));
    install(&database).await;
    install(&database).await;
    let refused = owner.batch_execute(&format!("BEGIN; {INSERT}; PREPARE TRANSACTION 'x'")).await.unwrap_err();
    let message = refused.as_db_error().unwrap().message().to_owned();
    assert_eq!(message, "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY");
    owner.batch_execute("ROLLBACK").await.unwrap();
    let (code, _, err) = outbox_relay(&text, &["migrate", "down", "--to", "6"]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("drop these first") && err.contains("outbox_notify on table public.bookings"), "{err}");
    owner.batch_execute("DROP TRIGGER outbox_notify ON bookings").await.unwrap();
    let (code, _, err) = outbox_relay(&text, &["migrate", "down", "--to", "6"]).await;
    assert_eq!(code, Some(0), "{err}");
}
