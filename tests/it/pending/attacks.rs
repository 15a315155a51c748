//! What a hostile review of due work tried: refusals of the server at every step, changes under a running relay, outages.

use std::time::Duration;

use tokio_postgres::Client;

use super::{PATIENCE, count, database, eventually, reminders, tables, welcome};
use crate::support::receiver::Receiver;
use crate::support::{Process, outbox_relay, toml};

mod values;

const WAITING: &str = "SELECT count(*) FROM outbox.claim WHERE state = 'waiting'";
const MARKED: &str = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";

/// Users of these numbers, due for an hour.
async fn users(owner: &Client, from: i64, to: i64) {
    let insert = "INSERT INTO users SELECT n, n || '@example.com', (now() AT TIME ZONE 'UTC') - interval '7 hours' \
                  + n * interval '1 millisecond' FROM generate_series($1::bigint, $2::bigint) AS n";
    owner.execute(insert, &[&from, &to]).await.unwrap();
}

async fn todos(owner: &Client, rows: i32) {
    let insert = "INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, $1::integer) AS n";
    owner.execute(insert, &[&rows]).await.unwrap();
}

/// Nobody can write claims for so long that statements give up.
async fn claims_locked(owner: &mut Client, during: Duration) {
    let transaction = owner.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE outbox.claim IN SHARE ROW EXCLUSIVE MODE").await.unwrap();
    tokio::time::sleep(during).await;
    transaction.commit().await.unwrap();
}

// Guarantee: pending.attacks
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_an_answer_that_cannot_be_recorded_for_a_while_sends_nothing_twice() {
    let (database, receiver) = (database().await, Receiver::start());
    let mut owner = tables(&database).await;
    users(&owner, 1, 1).await;
    receiver.answer(|_| (200, Duration::from_secs(1)));
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    claims_locked(&mut owner, Duration::from_secs(6)).await;
    // Recorded now, or listed as unknown when the claim has run out.
    let settled = "SELECT count(*) FROM outbox.claim WHERE state <> 'unknown'";
    eventually(PATIENCE * 2, async || count(&owner, settled).await == 0).await;
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_are_kept_over_a_passing_refusal_and_nothing_is_sent_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let mut owner = tables(&database).await;
    todos(&owner, 4).await;
    receiver.answer(|_| (200, Duration::from_secs(1)));
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || receiver.requests().len() == 4).await;
    claims_locked(&mut owner, Duration::from_secs(6)).await;
    eventually(PATIENCE, async || count(&owner, MARKED).await == 4).await;
    assert_eq!(receiver.requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_write_claims_is_refused_before_anything_is_sent() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    users(&owner, 1, 1).await;
    owner.batch_execute("REVOKE DELETE ON outbox.claim FROM relay").await.unwrap();
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert!(code == Some(1) && log.contains("privilege_missing"), "{log}");
    assert_eq!(receiver.requests().len(), 0);
}

// Guarantee: pending.attacks
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_waits_is_sent_once_when_the_guarantee_is_changed_either_way() {
    for (before, after) in [("at_least_once", "at_most_once"), ("at_most_once", "at_least_once")] {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = tables(&database).await;
        users(&owner, 1, 1).await;
        receiver.answer(|_| (429, Duration::ZERO));
        let relay = welcome(&receiver, "");
        let with = |guarantee: &str| toml(&database, "relay", None, &relay.replace("at_most_once", guarantee));
        let (code, _, log) = outbox_relay(&with(before), &["run", "--once"]).await;
        assert_eq!((code, count(&owner, WAITING).await), (Some(1), 1), "{log}");
        receiver.answer(|_| (200, Duration::ZERO));
        let (code, _, log) = outbox_relay(&with(after), &["run", "--once"]).await;
        assert_eq!(code, Some(0), "{log}");
        let (code, _, log) = outbox_relay(&with(after), &["run", "--once"]).await;
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(receiver.accepted("welcome"), ["1"], "{before} to {after}");
        assert_eq!(count(&owner, "SELECT count(*) FROM users WHERE sent_welcome").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_whose_row_is_gone_is_not_sent_again_and_keeps_no_run_from_its_end() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    todos(&owner, 1).await;
    receiver.answer(|_| (422, Duration::ZERO));
    let text = toml(&database, "relay", None, &reminders(&receiver, "on_poison = \"dead_letter\""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    let id = count(&owner, "SELECT id FROM outbox.dead_letter WHERE state = 'dead'").await.to_string();
    owner.batch_execute("DELETE FROM todos").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", &id, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let gone = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead' AND error ->> 'code' = 'row_gone'";
    assert_eq!((count(&owner, gone).await, receiver.requests().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_in_which_a_key_stands_twice_holds_no_other_row_up() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    todos(&owner, 3).await;
    owner
        .batch_execute(
            "INSERT INTO todos VALUES ('x', '1', 't', now() - interval '1 hour'); CREATE VIEW v AS SELECT * FROM todos; \
             GRANT SELECT ON v TO relay",
        )
        .await
        .unwrap();
    let relay = reminders(&receiver, "")
        .replace("public.todos", "public.v")
        .replace("\"workspaceId\", ", "")
        .replace("sent = \"delayNotificationSent\"\n", "");
    let (code, _, log) = outbox_relay(&toml(&database, "relay", None, &relay), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut ids = receiver.accepted("reminders");
    ids.sort();
    ids.dedup();
    assert_eq!(ids, ["1", "2", "3"]);
}

// Guarantee: pending.unmarkable
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_takes_the_mark_back_halts_under_either_guarantee_before_much_is_sent() {
    let swallow = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                   CREATE TRIGGER s BEFORE UPDATE ON todos FOR EACH ROW EXECUTE FUNCTION swallow(); \
                   CREATE TRIGGER s BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION swallow()";
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    todos(&owner, 1).await;
    users(&owner, 1, 20).await;
    owner.batch_execute(swallow).await.unwrap();
    let halted =
        "SELECT count(*) FROM outbox.cursor_status WHERE halted AND last_error ->> 'code' = 'mark_without_effect'";
    let text = toml(&database, "relay", None, &(reminders(&receiver, "") + &welcome(&receiver, "")));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || count(&owner, halted).await == 2).await;
    assert_eq!(receiver.accepted("welcome").len(), 0, "what cannot be marked is not sent at most once");
    assert_eq!(receiver.accepted("reminders").len(), 1);
}

// Guarantee: pending.unmarkable
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_no_update_may_touch_holds_no_other_up_under_at_most_once() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    users(&owner, 2, 9).await;
    owner
        .batch_execute(
            "INSERT INTO users VALUES (1, 'bad', (now() AT TIME ZONE 'UTC') - interval '8 hours'); \
             ALTER TABLE users ADD CONSTRAINT at CHECK (email LIKE '%@%') NOT VALID",
        )
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || receiver.accepted("welcome").len() == 8).await;
    let refused =
        "SELECT count(*) FROM outbox.claim WHERE key = '{1}' AND error ->> 'message' LIKE '%check constraint%'";
    eventually(PATIENCE, async || count(&owner, refused).await == 1).await;
}

/// Row 1 was refused for now, and waits; the receiver accepts again.
async fn one_waits(owner: &Client, receiver: &Receiver, text: &str) {
    users(owner, 1, 1).await;
    receiver.answer(|_| (429, Duration::ZERO));
    let (code, _, log) = outbox_relay(text, &["run", "--once"]).await;
    assert_eq!((code, count(owner, WAITING).await), (Some(1), 1), "{log}");
    receiver.answer(|_| (200, Duration::ZERO));
}

// Guarantee: pending.unmarkable
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_that_cannot_be_taken_back_yet_holds_no_other_row_up() {
    let (database, receiver) = (database().await, Receiver::start());
    let (mut owner, other) = (tables(&database).await, database.connect("postgres").await);
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    one_waits(&owner, &receiver, &text).await;
    owner.batch_execute("UPDATE users SET created = created + interval '5 hours'").await.unwrap();
    let transaction = owner.transaction().await.unwrap();
    transaction.batch_execute("UPDATE users SET email = 'x@example.com'").await.unwrap();
    users(&other, 2, 5).await;
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || receiver.accepted("welcome").len() == 4).await;
    transaction.rollback().await.unwrap();
    eventually(PATIENCE, async || count(&other, "SELECT count(*) FROM users WHERE NOT sent_welcome").await == 1).await;
    assert_eq!(receiver.accepted("welcome").len(), 4);
}

// Guarantee: pending.unmarkable
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_that_a_trigger_keeps_holds_no_other_row_up() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    one_waits(&owner, &receiver, &text).await;
    owner
        .batch_execute(
            "UPDATE users SET created = created + interval '5 hours'; \
             CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'sent is sent'; END $$; \
             CREATE TRIGGER no BEFORE UPDATE ON users FOR EACH ROW WHEN (OLD.sent_welcome AND NOT NEW.sent_welcome) \
             EXECUTE FUNCTION no()",
        )
        .await
        .unwrap();
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || process.log().contains("its mark stays")).await;
    users(&owner, 2, 5).await;
    eventually(PATIENCE, async || receiver.accepted("welcome").len() == 4).await;
    assert_eq!(count(&owner, WAITING).await, 1, "{}", process.log());
    let blamed = "SELECT count(*) FROM outbox.claim WHERE error ->> 'message' LIKE '%sent is sent%'";
    assert_eq!(count(&owner, blamed).await, 0, "no other row is put off for it");
}

// Guarantee: pending.attacks
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_waits_and_whose_due_time_moves_is_sent_once_also_with_the_marks_elsewhere() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    users(&owner, 1, 1).await;
    receiver.answer(|_| (429, Duration::ZERO));
    let text = toml(&database, "relay", None, &welcome(&receiver, "").replace("sent = \"sent_welcome\"\n", ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, count(&owner, WAITING).await), (Some(1), 1), "{log}");
    owner.batch_execute("UPDATE users SET created = created + interval '5 minutes'").await.unwrap();
    receiver.answer(|_| (200, Duration::ZERO));
    for _ in 0..2 {
        let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
        assert_eq!(code, Some(0), "{log}");
    }
    assert_eq!(receiver.accepted("welcome"), ["1"]);
}

// Guarantee: pending.outage
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_costs_few_rows_under_at_most_once_and_ends_a_run_once() {
    let (database, mut receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    users(&owner, 1, 500).await;
    receiver.answer(|_| (503, Duration::ZERO));
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let process = Process::spawn(&text, &["run"]);
    let unknown = "SELECT count(*) FROM outbox.claim WHERE state = 'unknown'";
    eventually(PATIENCE, async || count(&owner, unknown).await >= 3).await;
    // What is measured is the cost of an outage of five seconds.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let cost = count(&owner, unknown).await;
    println!("five seconds of 503 cost {cost} of 500 rows");
    assert!(cost < 50, "{cost}");
    drop(process);
    receiver.down();
    let begun = std::time::Instant::now();
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "60s"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
    assert_eq!(count(&owner, unknown).await, cost, "what was provably not sent is not unknown");
}
