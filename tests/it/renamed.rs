//! A relay that has another name than before: neither rows skipped nor rows sent again without an operator's decision.

use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::{finding, json, line, lines, printed, stdout_relay};
use crate::support::receiver::Receiver;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

mod large;
mod queued;

const REFUSED: &str = "relay cannot run; it is checked every 5 s";

async fn exists(owner: &Client, relay: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE relay = $1)";
    owner.query_one(sql, &[&relay]).await.unwrap().get(0)
}

async fn ends_well(text: &str, args: &[&str]) -> String {
    let (code, out, log) = outbox_relay(text, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{log}");
    out
}

/// Whether the replica's record says that it refuses the relay.
async fn listed(text: &str) -> bool {
    outbox_relay(text, &["replica", "list"]).await.1.contains("cursor_renamed")
}

/// A stream relay of this name that begins now.
fn now(database: &Database, name: &str) -> String {
    toml(database, "relay", None, &stdout_relay(name, "start = \"now\""))
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_is_refused_until_its_cursor_is_renamed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    ends_well(&now(&database, "old"), &["run", "--once"]).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('between')").await.unwrap();
    let text = now(&database, "new");
    let process = Process::spawn(&text, &["run"]);
    let refused = line(&process, REFUSED).await;
    let message =
        "no cursor new; cursor old has the same table and target, and no replica has its relay: was the relay renamed?";
    let hint = "If it was renamed: `outbox-relay cursor rename old new`; if it is new: `outbox-relay cursor create new --now`, \
                or --beginning.";
    assert_eq!((&refused["code"], &refused["error"]), (&"cursor_renamed".into(), &message.into()), "{refused}");
    assert_eq!(refused["hint"], hint);
    assert!(!exists(&owner, "new").await);
    let (_, why, _) = outbox_relay(&text, &["cursor", "why", "new"]).await;
    assert!(why.contains("cursor_renamed") && why.contains("`outbox-relay cursor rename old new`"), "{why}");
    let (code, check, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let found = finding(&json(&check), "cursor_renamed").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(found.contains("the first run sends 0 rows, and skips those after the position of old."), "{found}");
    assert_eq!(code, Some(3));
    eventually(PATIENCE * 2, || listed(&text)).await;
    // The replica that refuses the relay does not stand in the way.
    ends_well(&text, &["cursor", "rename", "old", "new", "--yes"]).await;
    eventually(PATIENCE * 2, || async { printed(&process, "new") == ["1"] }).await;
    assert!(lines(&process).iter().all(|line| line["message"] != "cursor created"), "{}", process.log());
}

/// How many cursors of this name `status -o json` and `cursor list -o json` give, and the lines of `status` and of `cursor list`
/// that begin with it or tell of the refusal.
async fn seen(text: &str, name: &str) -> ([usize; 2], Vec<String>) {
    let mut documents = [0; 2];
    let mut told = Vec::new();
    for (verb, count) in [&["status"][..], &["cursor", "list"]].iter().zip(&mut documents) {
        let document = json(&ends_well(text, &[verb, &["-o", "json"][..]].concat()).await);
        let cursors = document["cursors"].as_array().unwrap();
        *count = cursors.iter().filter(|cursor| cursor["name"] == name).count();
        let out = ends_well(text, verb).await;
        let tells = |line: &&str| line.starts_with(&format!("{name} ")) || line.contains("cursor_renamed");
        told.extend(out.lines().filter(tells).map(str::to_owned));
    }
    (documents, told)
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_rename_before_any_replica_reports_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    ends_well(&now(&database, "old"), &["run", "--once"]).await;
    let text = now(&database, "new");
    let why = async || {
        let (code, out, _) = outbox_relay(&text, &["cursor", "why", "new"]).await;
        println!("{out}");
        assert_eq!(code, Some(3), "{out}");
        out
    };
    let step = "  1. If it was renamed: `outbox-relay cursor rename old new`; if it is new: `outbox-relay cursor create new --now`, or \
                --beginning.\n";
    let sentence = "new has no cursor yet, and no replica creates it (cursor_renamed): cursor old has the same table and target, and \
                    no replica has its relay";
    // Before the rollout.
    let out = why().await;
    assert!(out.starts_with(sentence) && out.ends_with(step), "{out}");
    // While one replica has reported that it refuses the relay, and the other one has not.
    let replicas = ["one", "two"].map(|id| Process::spawn(&text, &["run", "--replica-id", id]));
    for replica in &replicas {
        line(replica, REFUSED).await;
    }
    let refused = "SELECT count(*) FROM outbox.replica WHERE relays -> 0 -> 'refused' ->> 'code' = 'cursor_renamed'";
    eventually(PATIENCE * 2, async || owner.query_one(refused, &[]).await.unwrap().get::<_, i64>(0) == 2).await;
    let before = "UPDATE outbox.replica SET relays = jsonb_set(relays, '{0,refused}', 'null') WHERE id = 'two'";
    owner.batch_execute(before).await.unwrap();
    let out = why().await;
    assert!(out.starts_with(sentence) && out.contains("replica one refuses new: cursor_renamed"), "{out}");
    assert!(out.ends_with(step), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_name_is_listed_once_while_a_replica_has_it() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    ends_well(&now(&database, "old"), &["run", "--once"]).await;
    let text = now(&database, "new");
    let mut process = Process::spawn(&text, &["run", "--replica-id", "after"]);
    line(&process, REFUSED).await;
    eventually(PATIENCE * 2, || listed(&text)).await;
    for text in [&text, &now(&database, "old")] {
        let (documents, told) = seen(text, "new").await;
        println!("{}", told.join("\n"));
        assert_eq!((documents, told.len()), ([1, 1], 4), "{told:?}");
        assert!(told[2].starts_with("replica after refuses new: cursor_renamed, its last error"), "{told:?}");
    }
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    for text in [&text, &now(&database, "old")] {
        assert_eq!(seen(text, "new").await, ([0, 0], Vec::new()), "no cursor, and no replica that refuses it");
        assert_eq!(seen(text, "old").await.0, [1, 1]);
    }
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn created_cursor_ends_the_question_of_a_rename() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    ends_well(&now(&database, "old"), &["run", "--once"]).await;
    let text = now(&database, "new");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert!(code == Some(1) && log.contains("cursor_renamed") && !exists(&owner, "new").await, "{log}");
    ends_well(&text, &["cursor", "create", "new", "--now"]).await;
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let out = ends_well(&text, &["run", "--once"]).await;
    assert_eq!(out.lines().count(), 1, "{out}");
    let check = json(&ends_well(&text, &["check", "-o", "json"]).await);
    assert!(finding(&check, "cursor_renamed").is_none(), "{check}");
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn relay_beside_configured_one_is_no_rename() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    // Of one configuration, run by two jobs.
    let both = toml(&database, "relay", None, &(stdout_relay("a", "") + &stdout_relay("b", "")));
    for relay in ["a", "b"] {
        ends_well(&both, &["run", "--once", "--relay", relay]).await;
        assert!(exists(&owner, relay).await);
    }
    owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap();
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_is_refused_beside_live_old_replica() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('1')").await.unwrap();
    let named = |name: &str| toml(&database, "relay", None, &stdout_relay(name, ""));
    let mut old = Process::spawn(&named("old"), &["run", "--replica-id", "before"]);
    eventually(PATIENCE * 2, || async { printed(&old, "old") == ["1"] }).await;
    let text = named("new");
    let new = Process::spawn(&text, &["run", "--replica-id", "after"]);
    let refused = line(&new, REFUSED).await;
    let message = "no cursor new; cursor old has the same table and target, and replica before still runs relay old, which this \
                   configuration does not have: was the relay renamed?";
    let hint = "If it was renamed: stop the replicas that have relay old, then `outbox-relay cursor rename old new`; if it is new: \
                `outbox-relay cursor create new --now`, or --beginning.";
    assert_eq!((&refused["code"], &refused["error"]), (&"cursor_renamed".into(), &message.into()), "{refused}");
    assert_eq!(refused["hint"], hint);
    let check = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
    assert_eq!(finding(&check, "cursor_renamed").unwrap_or_else(|| panic!("{check}"))["fix_setting"], hint);
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('2')").await.unwrap();
    eventually(PATIENCE * 2, || async { printed(&old, "old") == ["1", "2"] }).await;
    old.signal(Signal::TERM);
    assert_eq!(old.wait().await, Some(0), "{}", old.log());
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('3')").await.unwrap();
    eventually(PATIENCE * 2, || listed(&text)).await;
    ends_well(&text, &["cursor", "rename", "old", "new", "--yes"]).await;
    eventually(PATIENCE * 2, || async { printed(&new, "new") == ["3"] }).await;
    // A relay that is new has its cursor made, and runs beside the other.
    ends_well(&named("second"), &["cursor", "create", "second", "--now"]).await;
    let second = Process::spawn(&named("second"), &["run"]);
    line(&second, "relay ready").await;
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_of_due_work_sends_nothing_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE todos (id bigint PRIMARY KEY, due timestamptz); CREATE INDEX ON todos (due, id); \
             GRANT SELECT ON todos TO relay; INSERT INTO todos SELECT n, now() FROM generate_series(1, 3) AS n",
        )
        .await
        .unwrap();
    let named = |name: &str| {
        let relay = format!(
            "[[relay]]\nname = \"{name}\"\n[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"due\"\n\
             [relay.sink.http]\nurl = \"{}/todo\"\n",
            receiver.url()
        );
        toml(&database, "relay", None, &relay)
    };
    ends_well(&named("old"), &["run", "--once"]).await;
    let (code, check, _) = outbox_relay(&named("new"), &["check", "-o", "json"]).await;
    let check = json(&check);
    let found = finding(&check, "cursor_renamed").unwrap_or_else(|| panic!("{check}"));
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()), "{found}");
    let hint = "If it was renamed: `outbox-relay cursor rename old new`; if it is new: `outbox-relay cursor create new --beginning`.";
    assert_eq!(found["fix_setting"], hint);
    let (code, _, log) = outbox_relay(&named("new"), &["run", "--once"]).await;
    assert!(code == Some(1) && log.contains("cursor_renamed"), "{log}");
    assert_eq!(receiver.requests().len(), 3, "nothing was sent again");
    let (code, _, log) = outbox_relay(&named("new"), &["cursor", "create", "new", "--now"]).await;
    assert!(code == Some(1) && log.contains("which has no position: write --beginning"), "{log}");
    let out = ends_well(&named("new"), &["cursor", "create", "new", "--beginning"]).await;
    assert_eq!(out, "new: created; rows due and not marked as sent: 3\n");
    ends_well(&named("new"), &["cursor", "remove", "new", "--yes"]).await;
    ends_well(&named("new"), &["cursor", "rename", "old", "new", "--yes"]).await;
    ends_well(&named("new"), &["check"]).await;
    ends_well(&named("new"), &["run", "--once"]).await;
    assert_eq!(receiver.requests().len(), 3, "nothing was sent again");
}
