//! Due work against a real PostgreSQL: what is claimed, what is sent, what is marked.

use std::time::Duration;

use tokio_postgres::Client;

use crate::support::outside::line;
use crate::support::receiver::Receiver;
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

mod attacks;
mod due_again;
mod large;
mod nulls;
mod outcomes;
mod policies;
mod redrives;
mod rows;
mod slow;
mod sources;

/// The tables of both systems, granted as `migrate up --relay-role` grants them.
async fn tables(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE todos (\"workspaceId\" text, id text, title text, \"dueDate\" timestamptz, \
             \"delayNotificationSent\" boolean NOT NULL DEFAULT false, PRIMARY KEY (\"workspaceId\", id)); \
             CREATE INDEX ON todos (\"dueDate\", \"workspaceId\", id) WHERE NOT \"delayNotificationSent\"; \
             GRANT SELECT, UPDATE (\"delayNotificationSent\") ON todos TO relay; \
             CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL, created timestamp NOT NULL, \
             sent_welcome boolean NOT NULL DEFAULT false); \
             CREATE INDEX ON users (created, id) WHERE NOT sent_welcome; \
             GRANT SELECT, UPDATE (sent_welcome) ON users TO relay; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON todos, users TO app",
        )
        .await
        .unwrap();
    owner
}

fn reminders(receiver: &Receiver, more: &str) -> String {
    format!(
        "[[relay]]\nname = \"reminders\"\n{more}\n[relay.source.pending]\ntable = \"public.todos\"\n\
         key = [\"workspaceId\", \"id\"]\ndue = \"dueDate\"\nsent = \"delayNotificationSent\"\n\
         [relay.sink.http]\nmethod = \"PUT\"\nurl = \"{}/notifications/delayed-{{{{ id }}}}\"\n",
        receiver.url()
    )
}

fn welcome(receiver: &Receiver, more: &str) -> String {
    format!(
        "[[relay]]\nname = \"welcome\"\nguarantee = \"at_most_once\"\n{more}\n[relay.source.pending]\n\
         table = \"public.users\"\nkey = [\"id\"]\ndue = \"created\"\ndue_after = \"6h\"\ntime_zone = \"UTC\"\n\
         sent = \"sent_welcome\"\n[relay.sink.http]\nurl = \"{}/welcome\"\nbody = \"{{{{ email }}}}\"\n",
        receiver.url()
    )
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: pending.due
#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_is_sent_once_and_marked_and_what_is_not_due_is_left_alone() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute(
            "INSERT INTO todos (\"workspaceId\", id, title, \"dueDate\") \
             SELECT 'w/' || n % 2, (n / 2)::text, 'do it', now() + (n - 20) * interval '1 hour' FROM generate_series(0, 39) AS n; \
             INSERT INTO todos VALUES ('w', 'never', 'no date', NULL), ('w', 'end', 'far', 'infinity')",
        )
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let (code, out, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let mut accepted = receiver.accepted("reminders");
    accepted.sort();
    let mut expected: Vec<String> = (0..=20).map(|n| format!("w~1{}/{}", n % 2, n / 2)).collect();
    expected.sort();
    assert_eq!(accepted, expected);
    assert_eq!(
        count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\" AND \"dueDate\" <= now()").await,
        21
    );
    assert_eq!(count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await, 21);
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.claim").await, 0);
}

// Guarantee: pending.at-most-once
#[tokio::test(flavor = "multi_thread")]
async fn at_most_once_marks_before_it_sends_and_lists_what_hangs_as_unknown() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute(
            "INSERT INTO users (id, email, created) SELECT n, n || '@example.com', \
             (now() AT TIME ZONE 'UTC') - interval '6 hours' + (n - 5) * interval '1 minute' FROM generate_series(1, 10) AS n",
        )
        .await
        .unwrap();
    receiver.answer(|request| match request.key.as_str() {
        "welcome/3" => (200, Duration::from_secs(20)),
        "welcome/4" => (503, Duration::ZERO),
        _ => (200, Duration::ZERO),
    });
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    let mut accepted = receiver.accepted("welcome");
    accepted.sort();
    assert_eq!(accepted, ["1", "2", "5"]);
    assert_eq!(receiver.requests().len(), 5, "nothing twice");
    assert_eq!(count(&owner, "SELECT count(*) FROM users WHERE sent_welcome").await, 5);
    let unknown: Vec<String> = owner
        .query_one("SELECT array_agg(key[1] ORDER BY key) FROM outbox.claim WHERE state = 'unknown'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(unknown, ["3", "4"]);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, receiver.requests().len()), (Some(0), 5), "{log}");
}

// Guarantee: pending.own-backoff
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_fails_backs_off_by_itself_and_is_tried_again_while_others_flow() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO todos SELECT 'w', n::text, 't', now() FROM generate_series(1, 30) AS n")
        .await
        .unwrap();
    let first = std::sync::Mutex::new(true);
    receiver.answer(move |request| {
        let broken = request.key == "reminders/w/1" && std::mem::take(&mut *first.lock().unwrap());
        (if broken { 500 } else { 200 }, Duration::ZERO)
    });
    let text = toml(&database, "relay", None, &reminders(&receiver, ""));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || {
        count(&owner, "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"").await == 30
    })
    .await;
    let of_it: Vec<_> = receiver.requests().into_iter().filter(|request| request.key == "reminders/w/1").collect();
    assert_eq!(of_it.iter().map(|request| request.status).collect::<Vec<_>>(), [500, 200]);
    let pause = of_it[1].at.duration_since(of_it[0].at).unwrap();
    assert!(pause >= Duration::from_millis(500), "{pause:?}");
    assert_eq!(receiver.accepted("reminders").len(), 30);
    let failed = line(&process, "send failed").await;
    assert_eq!((&failed["ambiguous"], &failed["unknown"]), (&true.into(), &false.into()), "{failed}");
}
