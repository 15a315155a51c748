//! Rows that change, go, or are locked between claim and mark.

use std::time::Duration;

use outbox_relay::position::Timestamp;
use outbox_relay::source::pending::{Due, Pending, Taking, inspect};
use outbox_relay::source::{self};
use rustix::process::Signal;

use super::{PATIENCE, count, database, eventually, reminders, tables, welcome};
use crate::support::receiver::Receiver;
use crate::support::{Process, config, outbox_relay, toml};

const OPEN: &str = "SELECT count(*) FROM outbox.claim";

fn pending(config: &outbox_relay::config::Config) -> &Pending {
    match &config.relays[0].source {
        source::Config::Pending(pending) => pending,
        source::Config::Stream(_) | source::Config::Requests(_) | source::Config::Schedule(_) => panic!("due work"),
    }
}

// Guarantee: pending.due
#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_due_at_its_very_instant_and_not_a_microsecond_before() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    // The clock is set forward on 2026-03-29 at 02:00 in Berlin, and back on 2026-10-25 at 03:00.
    owner
        .batch_execute(
            "CREATE TABLE days (id integer PRIMARY KEY, at timestamp, day date, sent boolean NOT NULL DEFAULT false); \
             INSERT INTO days VALUES (1, '2026-03-29 01:59:59.999999', '2026-03-29'), (2, '2026-03-29 02:30:00', '2026-03-30'), \
             (3, '2026-10-25 02:30:00', '2026-10-25'), (4, '2026-10-25 03:00:00', '2026-10-26')",
        )
        .await
        .unwrap();
    let session = outbox_relay::database::Sessions::new(
        config(&database, "postgres", None, &reminders(&receiver, "")).postgres,
        outbox_relay::database::Limits { statement: PATIENCE, lock_kill: PATIENCE },
        "test".to_owned(),
    );
    let session = session.open().await.unwrap();
    for (column, after, id, due) in [
        ("at", "0s", 1, "2026-03-29T00:59:59.999999Z"),
        ("at", "0s", 2, "2026-03-29T01:30:00Z"),
        ("at", "0s", 3, "2026-10-25T01:30:00Z"),
        ("at", "0s", 4, "2026-10-25T02:00:00Z"),
        ("at", "6h", 1, "2026-03-29T06:59:59.999999Z"),
        ("at", "6h", 3, "2026-10-25T07:30:00Z"),
        ("day", "0s", 1, "2026-03-28T23:00:00Z"),
        ("day", "0s", 2, "2026-03-29T22:00:00Z"),
        ("day", "0s", 4, "2026-10-25T23:00:00Z"),
    ] {
        let relay = format!(
            "[[relay]]\nname = \"days\"\n[relay.source.pending]\ntable = \"public.days\"\nkey = [\"id\"]\ndue = \"{column}\"\n\
             due_after = \"{after}\"\ntime_zone = \"Europe/Berlin\"\nsent = \"sent\"\nwhere = {{ id = {id} }}\n[relay.sink.stdout]\n"
        );
        let config = config(&database, "postgres", None, &relay);
        let table = inspect(&session, pending(&config)).await.unwrap().unwrap();
        let sql = Due::new(&table, pending(&config)).claim_sql(&[], Taking::MarkLater, 10);
        let due = Timestamp::parse_rfc3339(due).unwrap();
        for (now, claimed) in [(due.minus(Duration::from_micros(1)), 0), (due, 1)] {
            owner.batch_execute("BEGIN").await.unwrap();
            let none: Option<Timestamp> = None;
            let rows = owner.query(&sql, &[&"days", &none, &now, &"t", &"r", &1.0]).await.unwrap();
            assert_eq!(rows.len(), claimed, "{column} {id} + {after} at {now}");
            owner.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

// Guarantee: pending.changed-meanwhile
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_deleted_or_due_later_while_it_is_being_sent_is_left_as_the_application_wants_it() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n, 't', now() FROM unnest(ARRAY['gone', 'later', 'stays']) AS n")
        .await
        .unwrap();
    receiver.answer(|_| (200, Duration::from_secs(1)));
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || receiver.requests().len() == 3).await;
    owner
        .batch_execute(
            "DELETE FROM todos WHERE id = 'gone'; UPDATE todos SET \"dueDate\" = now() + interval '3 seconds' WHERE id = 'later'",
        )
        .await
        .unwrap();
    eventually(PATIENCE, async || count(&owner, OPEN).await == 0).await;
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    assert_eq!(count(&owner, marked).await, 1, "only the one that stayed as it was");
    eventually(PATIENCE, async || count(&owner, marked).await == 2).await;
    let mut keys: Vec<_> = receiver.requests().into_iter().map(|request| request.key).collect();
    keys.sort();
    assert_eq!(keys, ["reminders/w/gone", "reminders/w/later", "reminders/w/later", "reminders/w/stays"]);
    assert!(!process.log().contains("WARN"), "{}", process.log());
}

// Guarantee: pending.at-most-once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_a_row_that_was_provably_not_sent_is_sent_later_unless_it_is_gone_or_not_due() {
    let (database, mut receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let insert = "INSERT INTO users SELECT n, n || '@example.com', (now() AT TIME ZONE 'UTC') - interval '7 hours' \
                  FROM generate_series(1, 3) AS n";
    owner.batch_execute(insert).await.unwrap();
    receiver.down();
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    let waiting = "SELECT count(*) FROM outbox.claim WHERE state = 'waiting' AND error ->> 'code' = 'connect'";
    eventually(PATIENCE, async || count(&owner, waiting).await == 3).await;
    assert_eq!(count(&owner, "SELECT count(*) FROM users WHERE sent_welcome").await, 3);
    owner
        .batch_execute(
            "DELETE FROM users WHERE id = 2; UPDATE users SET created = created + interval '5 hours' WHERE id = 3",
        )
        .await
        .unwrap();
    receiver.up();
    eventually(PATIENCE * 2, async || count(&owner, OPEN).await == 0).await;
    assert_eq!(receiver.accepted("welcome"), ["1"]);
    assert_eq!(count(&owner, "SELECT id FROM users WHERE NOT sent_welcome").await, 3, "its mark was taken back");
}

// Guarantee: pending.locked-row
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_application_keeps_locked_is_marked_when_it_is_free_and_sent_once() {
    let (database, receiver) = (database().await, Receiver::start());
    let (mut owner, looker) = (tables(&database).await, database.connect("postgres").await);
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 5) AS n")
        .await
        .unwrap();
    let transaction = owner.transaction().await.unwrap();
    transaction.batch_execute("UPDATE todos SET title = 'new' WHERE id = '3'").await.unwrap();
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE, async || count(&looker, marked).await == 4).await;
    assert_eq!(receiver.requests().len(), 5);
    transaction.commit().await.unwrap();
    eventually(PATIENCE, async || count(&looker, marked).await == 5).await;
    eventually(PATIENCE, async || count(&looker, OPEN).await == 0).await;
    assert_eq!(receiver.requests().len(), 5, "nothing was sent again");
}

// Guarantee: pending.locked-row
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_marked_is_told_apart_and_holds_no_other_up() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute(
            "INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 9) AS n; \
             CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
             CREATE TRIGGER no BEFORE UPDATE ON todos FOR EACH ROW WHEN (OLD.id = '4') EXECUTE FUNCTION no(); \
             CREATE FUNCTION nor() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'nor this' USING ERRCODE = '50001'; END $$; \
             CREATE TRIGGER nor BEFORE UPDATE ON todos FOR EACH ROW WHEN (OLD.id = '7') EXECUTE FUNCTION nor()",
        )
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert_eq!(receiver.requests().len(), 9, "each once in a run");
    assert_eq!(log.matches("sent, not marked").count(), 2, "{log}");
    assert!(!log.contains("send failed"), "{log}");
    assert_eq!(count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await, 7);
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim WHERE state = 'waiting' AND attempts = 1").await, 2);
}

// Guarantee: pending.locked-row
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_waits_for_a_lock_delays_no_other_record() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, mut other) = (tables(&database).await, database.connect("postgres").await);
    owner
        .batch_execute(
            "CREATE TABLE sums (n bigint); INSERT INTO sums VALUES (0); \
             CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS \
                 $$ BEGIN UPDATE public.sums SET n = n + 1; RETURN NEW; END $$; \
             CREATE TRIGGER add BEFORE UPDATE ON todos FOR EACH ROW WHEN (OLD.id IN ('2', '4')) EXECUTE FUNCTION add()",
        )
        .await
        .unwrap();
    let transaction = other.transaction().await.unwrap();
    transaction.batch_execute("UPDATE sums SET n = n").await.unwrap();
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 9) AS n")
        .await
        .unwrap();
    let _process = Process::spawn(&toml(&database, "relay", None, &reminders(&receiver, "")), &["run"]);
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE * 2, async || count(&owner, marked).await == 7).await;
    transaction.rollback().await.unwrap();
    eventually(PATIENCE * 2, async || count(&owner, marked).await == 9).await;
    assert_eq!(receiver.requests().len(), 9, "each once");
}

// Guarantee: pending.once-without-faults
#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_rows_and_send_each_once_and_a_killed_ones_rows_are_sent_by_another() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    receiver.answer(|_| (200, Duration::from_millis(100)));
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let mut replicas: Vec<Process> =
        (0..3).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    eventually(PATIENCE, async || count(&owner, "SELECT count(*) FROM outbox.cursor").await == 1).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 300) AS n")
        .await
        .unwrap();
    let claimed_by = "SELECT count(DISTINCT claimed_by) FROM outbox.claim";
    eventually(PATIENCE, async || count(&owner, claimed_by).await >= 2).await;
    let marked = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
    eventually(PATIENCE * 2, async || count(&owner, marked).await == 300).await;
    assert_eq!(receiver.requests().len(), 300, "each once, by whomever");

    owner
        .batch_execute("INSERT INTO todos SELECT 'x', n::text, 't', now() FROM generate_series(1, 300) AS n")
        .await
        .unwrap();
    eventually(PATIENCE, async || receiver.requests().len() > 320).await;
    replicas[0].signal(Signal::KILL);
    replicas[0].wait().await;
    eventually(PATIENCE * 4, async || count(&owner, marked).await == 600).await;
    let mut keys: Vec<_> = receiver.requests().into_iter().map(|request| request.key).collect();
    let all = keys.len();
    keys.sort();
    keys.dedup();
    println!("{} rows came again after a kill", all - keys.len());
    assert_eq!(keys.len(), 600);
    assert!(all - keys.len() <= 10, "at most what one replica had in flight");
}
