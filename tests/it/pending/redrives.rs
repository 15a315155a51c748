//! A redrive ends, whatever becomes of its row or its replica meanwhile.

use std::time::Duration;

use super::{PATIENCE, count, database, eventually, reminders, tables};
use crate::support::receiver::Receiver;
use crate::support::{Process, outbox_relay, toml};

const LETTERS: &str = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead'";

/// What `dead-letter show` prints of the first letter.
async fn shown(text: &str, owner: &tokio_postgres::Client) -> String {
    let id = count(owner, "SELECT min(id) FROM outbox.dead_letter").await.to_string();
    let (code, out, log) = outbox_relay(text, &["dead-letter", "show", &id]).await;
    assert_eq!(code, Some(0), "{log}");
    out
}

/// What has become of the letters, in the order in which their rows were due.
async fn letters(owner: &tokio_postgres::Client) -> String {
    let sql = "SELECT string_agg(state || ' ' || (error ->> 'code'), ', ' ORDER BY created_at) FROM outbox.dead_letter";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// A row that is refused, put off, and refused again when it is due: two letters.
async fn refused_twice(text: &str, owner: &tokio_postgres::Client, receiver: &Receiver) {
    receiver.answer(|_| (422, Duration::ZERO));
    for due in ["INSERT INTO todos VALUES ('w', '1', 't', now())", "UPDATE todos SET \"dueDate\" = now()"] {
        owner.batch_execute(due).await.unwrap();
        assert_eq!(outbox_relay(text, &["run", "--once"]).await.0, Some(1));
    }
    assert_eq!(letters(owner).await, "dead http_422, dead http_422");
}

// Guarantee: pending.redrive-ends
#[tokio::test(flavor = "multi_thread")]
async fn redrive_ends_when_its_row_is_deleted_or_marked_after_a_failed_attempt() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let rows = "INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 2) AS n";
    owner.batch_execute(rows).await.unwrap();
    receiver.answer(|_| (422, Duration::ZERO));
    let text = toml(&database, "relay", None, &reminders(&receiver, "on_poison = \"dead_letter\""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || count(&owner, LETTERS).await == 2).await;
    receiver.answer(|_| (503, Duration::ZERO));
    let redrive = ["dead-letter", "redrive", "--cursor", "reminders", "--yes"];
    let (code, _, log) = outbox_relay(&text, &redrive).await;
    assert_eq!(code, Some(0), "{log}");
    let waiting = "SELECT count(*) FROM outbox.claim WHERE state = 'waiting'";
    eventually(PATIENCE, async || count(&owner, waiting).await == 2).await;
    let gone = "DELETE FROM todos WHERE id = '1'; UPDATE todos SET \"delayNotificationSent\" = true WHERE id = '2'";
    owner.batch_execute(gone).await.unwrap();
    let ended = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'dead' AND error ->> 'code' = 'row_gone'";
    eventually(PATIENCE * 2, async || count(&owner, ended).await == 2).await;
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim").await, 0);
    let out = shown(&text, &owner).await;
    assert!(out.contains("row_gone: The row was deleted, marked or put off since"), "{out}");
}

// Guarantee: pending.redrive-ends
#[tokio::test(flavor = "multi_thread")]
async fn redrive_whose_replica_ended_under_at_most_once_has_an_unknown_outcome() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute("INSERT INTO todos VALUES ('w', '1', 't', now())").await.unwrap();
    receiver.answer(|_| (422, Duration::ZERO));
    let more = "guarantee = \"at_most_once\"\non_poison = \"dead_letter\"";
    let text = toml(&database, "relay", None, &reminders(&receiver, more));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    assert_eq!(count(&owner, LETTERS).await, 1);
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "reminders", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    // As a replica leaves it that is killed while it sends the row again.
    let killed = "UPDATE outbox.claim SET state = 'sending', claimed_by = 'killed', expires_at = now()";
    assert_eq!(owner.execute(killed, &[]).await.unwrap(), 1);
    let (_, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    let ended = "SELECT count(*) FROM outbox.dead_letter WHERE state = 'redriven' AND error ->> 'code' = 'interrupted'";
    assert_eq!((count(&owner, ended).await, receiver.requests().len()), (1, 1), "{log}");
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim WHERE state = 'unknown'").await, 1);
    let out = shown(&text, &owner).await;
    assert!(out.contains("the claim of replica killed ended without a record"), "{out}");
}

// Guarantee: pending.redrive-ends
#[tokio::test(flavor = "multi_thread")]
async fn redrives_of_a_row_that_was_put_off_and_is_refused_again_send_it_once() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &reminders(&receiver, "on_poison = \"dead_letter\""));
    refused_twice(&text, &owner, &receiver).await;
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "reminders", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || letters(&owner).await == "dead row_gone, dead http_422").await;
    assert_eq!(receiver.requests().iter().map(|request| request.replayed).collect::<Vec<_>>(), [false, false, true]);
}

// Guarantee: pending.redrive-ends
#[tokio::test(flavor = "multi_thread")]
async fn redrive_does_not_send_its_row_as_it_is_due_since() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &reminders(&receiver, "on_poison = \"dead_letter\""));
    refused_twice(&text, &owner, &receiver).await;
    receiver.answer(|_| (200, Duration::ZERO));
    let resent = async |letter: &str| {
        let id = count(&owner, &format!("SELECT {letter}(id) FROM outbox.dead_letter")).await.to_string();
        let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", &id, "--yes"]).await;
        assert_eq!(code, Some(0), "{log}");
        let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
        assert_eq!(code, Some(0), "{log}");
        (letters(&owner).await, receiver.accepted("reminders").len())
    };
    assert_eq!(resent("min").await, ("dead row_gone, dead http_422".to_owned(), 0));
    assert_eq!(resent("max").await, ("dead row_gone, redriven http_422".to_owned(), 1));
    assert_eq!(count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await, 1);
}

// Guarantee: pending.redrive-ends
#[tokio::test(flavor = "multi_thread")]
async fn redrive_with_an_unknown_outcome_is_not_ended_by_its_row_that_is_due_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute("INSERT INTO todos VALUES ('w', '1', 't', now())").await.unwrap();
    receiver.answer(|_| (422, Duration::ZERO));
    let more = "guarantee = \"at_most_once\"\non_poison = \"dead_letter\"";
    let text = toml(&database, "relay", None, &reminders(&receiver, more));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "reminders", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    // As a replica leaves it that is killed while it sends the row again; then the application has it due again.
    let killed = "UPDATE outbox.claim SET state = 'sending', claimed_by = 'killed', expires_at = now(); \
                  UPDATE todos SET \"dueDate\" = now(), \"delayNotificationSent\" = false";
    owner.batch_execute(killed).await.unwrap();
    receiver.answer(|_| (200, Duration::ZERO));
    let (_, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(letters(&owner).await, "redriven interrupted", "{log}");
    let requests: Vec<_> = receiver.requests().iter().map(|request| (request.status, request.replayed)).collect();
    assert_eq!(requests, [(422, false), (200, false)]);
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim WHERE state = 'unknown'").await, 1);
}
