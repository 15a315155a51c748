//! Tables that are only read, views, dates and zones, constants, and keys of any type.

use std::time::Duration;

use super::{PATIENCE, count, database, eventually, reminders, tables};
use crate::support::receiver::Receiver;
use crate::support::{Process, outbox_relay, toml};

// Guarantee: pending.read-only
#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_only_read_and_a_row_whose_due_time_moves_on_is_due_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE contacts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text, last date); \
             CREATE VIEW silent AS SELECT id, name, last + 30 AS due FROM contacts; GRANT SELECT ON silent TO relay; \
             INSERT INTO contacts (name, last) SELECT 'c' || n, current_date - 25 - n FROM generate_series(1, 10) AS n",
        )
        .await
        .unwrap();
    let relay = format!(
        "[[relay]]\nname = \"silent\"\n[relay.source.pending]\ntable = \"public.silent\"\nkey = [\"id\"]\ndue = \"due\"\n\
         time_zone = \"UTC\"\n[relay.sink.http]\nurl = \"{}/x\"\nbody = \"{{{{ name }}}}\"\n",
        receiver.url()
    );
    let text = toml(&database, "relay", None, &relay);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut names: Vec<String> = receiver.requests().into_iter().map(|request| request.body).collect();
    names.sort();
    assert_eq!(names, ["c10", "c5", "c6", "c7", "c8", "c9"]);
    assert_eq!(count(&owner, "SELECT count(*) FROM outbox.sent WHERE relay = 'silent'").await, 6);
    owner.batch_execute("UPDATE contacts SET last = last + 1 WHERE name = 'c9'").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, receiver.requests().len()), (Some(0), 7), "{log}");
}

// Guarantee: pending.keys
#[tokio::test(flavor = "multi_thread")]
async fn row_due_again_has_another_idempotency_key() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let due = async |at: &str| {
        let again = "INSERT INTO todos VALUES ('w', '1', 't', $1::text::timestamptz) ON CONFLICT (\"workspaceId\", id) \
                     DO UPDATE SET \"dueDate\" = excluded.\"dueDate\", \"delayNotificationSent\" = false";
        owner.execute(again, &[&at]).await.unwrap();
        let (code, _, log) =
            outbox_relay(&toml(&database, "relay", None, &reminders(&receiver, "")), &["run", "--once"]).await;
        (code, log)
    };
    let (code, log) = due("2026-01-01 08:00:00+01").await;
    assert_eq!(code, Some(0), "{log}");
    receiver.answer(|_| (500, Duration::ZERO));
    let (code, log) = due("2026-01-02 08:00:00.000001+01").await;
    assert_eq!(code, Some(1), "{log}");
    receiver.answer(|_| (200, Duration::ZERO));
    let (code, log) = due("2026-01-02 08:00:00.000001+01").await;
    assert_eq!(code, Some(0), "{log}");
    let keys: Vec<_> = receiver.requests().into_iter().map(|one| (one.status, one.key, one.due)).collect();
    let key = |status, due: &str| (status, "reminders/w/1".to_owned(), Some(due.to_owned()));
    let (first, second) = ("2026-01-01T07:00:00.000000Z", "2026-01-02T07:00:00.000001Z");
    assert_eq!(keys, [key(200, first), key(500, second), key(200, second)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn constants_choose_rows_and_keys_of_four_columns_and_any_type_are_found_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TYPE kind AS ENUM ('a', 'b'); \
             CREATE TABLE odd (k1 kind, k2 char(5), k3 numeric(8, 3), k4 timestamptz, what text, live boolean, at timestamptz, \
             done timestamptz, PRIMARY KEY (k1, k2, k3, k4)); \
             CREATE INDEX ON odd (at) WHERE done IS NULL; GRANT SELECT, UPDATE (done) ON odd TO relay; \
             INSERT INTO odd SELECT 'a', 'x/%', 1.5, '2026-03-29 02:30:00.123456+02', w, l, now() - interval '1 hour', NULL \
             FROM (VALUES ('it''s \\', true)) AS v (w, l); \
             INSERT INTO odd SELECT 'b', 'y', 2, now(), w, l, now() - interval '1 hour', NULL \
             FROM (VALUES ('it''s \\', false)) AS v (w, l); \
             INSERT INTO odd SELECT 'b', 'z', 2, now(), 'other', true, now() - interval '1 hour', NULL",
        )
        .await
        .unwrap();
    let relay = format!(
        "[[relay]]\nname = \"odd\"\n[relay.source.pending]\ntable = \"public.odd\"\nkey = [\"k1\", \"k2\", \"k3\", \"k4\"]\n\
         due = \"at\"\nsent = \"done\"\nwhere = {{ what = 'it''s \\', live = true }}\n[relay.sink.http]\nurl = \"{}/x\"\n",
        receiver.url()
    )
    .replace("'it''s \\'", "\"it's \\\\\"");
    let text = toml(&database, "relay", None, &relay);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(receiver.accepted("odd"), ["a/x~1%25/1.500/2026-03-29%2000:30:00.123456+00"]);
    assert_eq!(count(&owner, "SELECT count(*) FROM odd WHERE done IS NOT NULL").await, 1);
}

// Guarantee: pending.earlier
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_due_earlier_than_the_next_is_seen_at_once() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = super::tables(&database).await;
    owner.batch_execute("INSERT INTO todos VALUES ('w', 'later', 't', now() + interval '1 hour')").await.unwrap();
    let text = toml(&database, "relay", None, &super::reminders(&receiver, ""));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || count(&owner, "SELECT count(*) FROM outbox.cursor").await == 1).await;
    for n in 0..5 {
        let begun = std::time::Instant::now();
        let insert = format!("INSERT INTO todos VALUES ('w', '{n}', 't', now() + interval '700 ms')");
        owner.batch_execute(&insert).await.unwrap();
        eventually(PATIENCE, async || receiver.accepted("reminders").len() == n + 1).await;
        let took = begun.elapsed();
        assert!(took >= std::time::Duration::from_millis(700), "early: {took:?}");
        println!("{:?} after it was due", took - std::time::Duration::from_millis(700));
    }
}
