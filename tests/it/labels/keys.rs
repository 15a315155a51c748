//! Keys and lanes over an enum whose labels change: what is named by a label is not taken for what has that label now.

use std::time::Duration;

use tokio_postgres::Client;

use super::rename;
use crate::support::outside::{fixed, halted};
use crate::support::receiver::Receiver;
use crate::support::relays::parse;
use crate::support::{CLOCK, Database, PATIENCE, Replica, bookings, database, eventually, outbox_relay, toml};

/// So that rows of one id are due at the same time: a mark is of one due time.
const DUE: &str = "timestamptz '2026-11-01 08:00+00'";

const EXCHANGE: &str = "'open' TO 'other'; 'closed' TO 'open'; 'other' TO 'closed'";

/// Jobs that are named by a number and a column of this type; `more` are columns.
async fn jobs(more: &str) -> (Database, Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(&format!(
            "CREATE SCHEMA hidden; CREATE TYPE hidden.state AS ENUM ('open', 'closed', 'late'); \
             GRANT USAGE ON SCHEMA hidden TO relay; \
             CREATE TABLE jobs (id bigint NOT NULL, state hidden.state NOT NULL, due timestamptz NOT NULL DEFAULT {DUE}{more}, \
             PRIMARY KEY (id, state)); CREATE INDEX jobs_due ON jobs (due, id, state); GRANT SELECT, UPDATE ON jobs TO relay"
        ))
        .await
        .unwrap();
    (database, owner)
}

/// Their relay; `source` stands in the section of the source, `turn` is a section.
fn relay(receiver: &Receiver, source: &str, turn: &str) -> String {
    format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\", \"state\"]\ndue = \"due\"\n\
         {source}\n{turn}\n[relay.sink.http]\nurl = \"{}/jobs\"\n",
        receiver.url()
    )
}

async fn insert(owner: &Client, jobs: &[(i64, &str)]) {
    for (id, state) in jobs {
        owner.batch_execute(&format!("INSERT INTO jobs (id, state) VALUES ({id}, '{state}')")).await.unwrap();
    }
}

fn accepted(receiver: &Receiver) -> Vec<String> {
    let mut accepted = receiver.accepted("jobs");
    accepted.sort();
    accepted
}

async fn says(owner: &Client, parts: &[(&str, &str)]) {
    let (_, error) = halted(owner, "jobs").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"labels_renamed".into()), "{error}");
    for (key, part) in parts {
        assert!(error[*key].as_str().unwrap().contains(part), "{part}: {error}");
    }
}

/// The mark of one row would be the other's, which would never be sent.
// Guarantee: pending.names
#[tokio::test(flavor = "multi_thread")]
async fn exchanged_labels_of_a_key_halt_before_a_row_is_taken_for_another_that_was_sent() {
    for restarts in [false, true] {
        let ((database, owner), receiver) = (jobs("").await, Receiver::start());
        let text = toml(&database, "relay", None, &relay(&receiver, "", ""));
        let mut replica = Some(Replica::start(&parse(&text), "r1"));
        insert(&owner, &[(7, "open")]).await;
        eventually(PATIENCE * 2, async || accepted(&receiver) == ["7/open"]).await;
        let marked = "SELECT count(*) FROM outbox.sent";
        eventually(PATIENCE, async || owner.query_one(marked, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
        if restarts && let Some(replica) = replica.take() {
            replica.stop().await;
        }
        rename(&owner, EXCHANGE).await;
        // What was called closed before.
        insert(&owner, &[(7, "open")]).await;
        let replica = replica.unwrap_or_else(|| Replica::start(&parse(&text), "r2"));
        let parts = [
            ("message", "public.jobs"),
            ("message", "label \"open\" of column state is \"closed\" now"),
            ("hint", "RENAME VALUE 'closed' TO 'open'"),
        ];
        says(&owner, &parts).await;
        assert_eq!(accepted(&receiver), ["7/open"], "{restarts}");
        rename(&owner, EXCHANGE).await;
        eventually(PATIENCE * 2, async || accepted(&receiver) == ["7/closed", "7/open"]).await;
        fixed(&owner, "jobs").await;
        replica.stop().await;
        assert_eq!(accepted(&receiver), ["7/closed", "7/open"], "{restarts}: each once");
    }
}

/// Nothing is named by them.
// Guarantee: pending.names
#[tokio::test(flavor = "multi_thread")]
async fn labels_that_no_mark_has_are_renamed_and_added_under_a_running_relay() {
    let ((database, owner), receiver) = (jobs("").await, Receiver::start());
    let text = toml(&database, "relay", None, &relay(&receiver, "", ""));
    let replica = Replica::start(&parse(&text), "r1");
    insert(&owner, &[(1, "open")]).await;
    eventually(PATIENCE * 2, async || accepted(&receiver) == ["1/open"]).await;
    rename(&owner, "'late' TO 'later'").await;
    insert(&owner, &[(2, "later")]).await;
    eventually(PATIENCE * 2, async || accepted(&receiver) == ["1/open", "2/later"]).await;
    owner.batch_execute("ALTER TYPE hidden.state ADD VALUE 'never'").await.unwrap();
    insert(&owner, &[(3, "never")]).await;
    eventually(PATIENCE * 2, async || accepted(&receiver) == ["1/open", "2/later", "3/never"]).await;
    // That one has been remembered since.
    rename(&owner, "'never' TO 'ever'").await;
    says(&owner, &[("message", "label \"never\" of column state is \"ever\" now")]).await;
    replica.stop().await;
}

/// As docs/TABLES.md says.
// Guarantee: pending.names
#[tokio::test(flavor = "multi_thread")]
async fn label_of_a_key_is_renamed_for_good_with_the_marks_that_have_it() {
    let ((database, owner), receiver) = (jobs("").await, Receiver::start());
    let text = toml(&database, "relay", None, &relay(&receiver, "", ""));
    let replica = Replica::start(&parse(&text), "r1");
    insert(&owner, &[(1, "open"), (1, "closed")]).await;
    let marked = "SELECT count(*) FROM outbox.sent";
    eventually(PATIENCE * 2, async || owner.query_one(marked, &[]).await.unwrap().get::<_, i64>(0) == 2).await;
    replica.stop().await;
    owner
        .batch_execute(
            "BEGIN; ALTER TYPE hidden.state RENAME VALUE 'open' TO 'fresh'; \
             UPDATE outbox.sent SET key[2] = 'fresh' WHERE relay = 'jobs' AND key[2] = 'open'; \
             UPDATE outbox.claim SET key[2] = 'fresh' WHERE relay = 'jobs' AND key[2] = 'open'; COMMIT",
        )
        .await
        .unwrap();
    let replica = Replica::start(&parse(&text), "r2");
    insert(&owner, &[(2, "fresh")]).await;
    eventually(PATIENCE * 2, async || accepted(&receiver).contains(&"2/fresh".to_owned())).await;
    replica.stop().await;
    assert_eq!(accepted(&receiver), ["1/closed", "1/open", "2/fresh"], "each once");
}

/// Its mark would be set at the row that has the label now.
// Guarantee: pending.names
#[tokio::test(flavor = "multi_thread")]
async fn row_whose_label_changes_while_it_is_sent_is_marked_itself_and_no_other() {
    let ((database, owner), receiver) = (jobs(", sent boolean NOT NULL DEFAULT false").await, Receiver::start());
    let text = toml(&database, "relay", None, &relay(&receiver, "sent = \"sent\"", ""));
    let replica = Replica::start(&parse(&text), "r1");
    receiver.hold();
    insert(&owner, &[(7, "open")]).await;
    let claimed = "SELECT count(*) FROM outbox.claim";
    eventually(PATIENCE * 2, async || owner.query_one(claimed, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    rename(&owner, EXCHANGE).await;
    insert(&owner, &[(7, "open")]).await;
    receiver.release();
    says(&owner, &[("message", "label \"open\" of column state is \"closed\" now")]).await;
    let sent = "SELECT count(*) FILTER (WHERE sent), count(*) FROM jobs";
    let counts = async || {
        let row = owner.query_one(sent, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    eventually(PATIENCE, async || accepted(&receiver) == ["7/open"]).await;
    assert_eq!(counts().await, (0, 2), "neither is marked");
    rename(&owner, EXCHANGE).await;
    eventually(PATIENCE * 2, async || counts().await == (2, 2)).await;
    replica.stop().await;
    assert_eq!(accepted(&receiver), ["7/closed", "7/open"], "each once");
}

/// Under its new label a row would be in another lane than the one before it, which is on its way.
// Guarantee: pending.names
#[tokio::test(flavor = "multi_thread")]
async fn label_of_a_lane_that_is_renamed_while_a_row_of_it_is_sent_lets_no_row_pass_it() {
    let ((database, owner), receiver) = (jobs(", sent boolean NOT NULL DEFAULT false").await, Receiver::start());
    owner.batch_execute("CREATE UNIQUE INDEX ON jobs (id)").await.unwrap();
    let text = relay(&receiver, "sent = \"sent\"", "[relay.turn]\nlane = \"state\"\nin_flight = 2");
    let text = toml(&database, "relay", None, &text.replace("key = [\"id\", \"state\"]", "key = [\"id\"]"));
    let replica = Replica::start(&parse(&text), "r1");
    receiver.hold();
    insert(&owner, &[(1, "open")]).await;
    let claimed = "SELECT count(*) FROM outbox.claim";
    let claims = async || owner.query_one(claimed, &[]).await.unwrap().get::<_, i64>(0);
    eventually(PATIENCE * 2, async || claims().await == 1).await;
    rename(&owner, "'open' TO 'fresh'").await;
    insert(&owner, &[(2, "fresh")]).await;
    receiver.release();
    says(&owner, &[("message", "label \"open\" of column state is \"fresh\" now")]).await;
    assert_eq!(claims().await, 1, "the second is not claimed beside the first");
    rename(&owner, "'fresh' TO 'open'").await;
    eventually(PATIENCE * 2, async || receiver.accepted("jobs") == ["1", "2"]).await;
    replica.stop().await;
}

/// A stream that has parked the key `open` with two rows, and has judged that.
async fn parked() -> (Database, Client, Receiver, String, Replica) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let types = "CREATE SCHEMA hidden; CREATE TYPE hidden.state AS ENUM ('open', 'closed'); \
                 ALTER TABLE bookings ADD state hidden.state";
    owner.batch_execute(types).await.unwrap();
    let receiver = Receiver::start();
    receiver.answer(|request| (if request.body.contains("bad") { 422 } else { 200 }, Duration::ZERO));
    let relay = receiver.relay("h", "on_poison = \"park_key\"");
    let text = toml(&database, "relay", None, &format!("{relay}[relay.turn]\nlane = \"state\"\nrows = 50\n"));
    book(&owner, &[("open", "bad"), ("open", "2")]).await;
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || waiting(&owner).await == 2).await;
    book(&owner, &[("closed", "3")]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["3"]).await;
    (database, owner, receiver, text, replica)
}

async fn book(owner: &Client, rows: &[(&str, &str)]) {
    for (state, payload) in rows {
        let row = format!("INSERT INTO bookings (state, payload) VALUES ('{state}', '{payload}')");
        owner.batch_execute(&row).await.unwrap();
    }
}

async fn waiting(owner: &Client) -> i64 {
    owner.query_one("SELECT count(*) FROM outbox.parked", &[]).await.unwrap().get(0)
}

// Guarantee: parked.labels
#[tokio::test(flavor = "multi_thread")]
async fn renamed_label_of_a_parked_key_lets_no_row_of_it_pass() {
    // Renamed, and exchanged with another: what the parked rows have is called so afterwards.
    for (labels, now, back) in [("'open' TO 'fresh'", "fresh", "'fresh' TO 'open'"), (EXCHANGE, "closed", EXCHANGE)] {
        let (_database, owner, receiver, text, replica) = parked().await;
        rename(&owner, labels).await;
        book(&owner, &[(now, "4")]).await;
        let (_, error) = halted(&owner, "h").await;
        assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"keys_parked".into()), "{error}");
        for (key, part) in [("message", "labels of the enum"), ("hint", "RENAME VALUE")] {
            assert!(error[key].as_str().unwrap().contains(part), "{error}");
        }
        assert_eq!(receiver.accepted("h"), ["3"], "4 would pass 2");
        rename(&owner, back).await;
        let (code, out, log) = outbox_relay(&text, &["cursor", "resume", "h"]).await;
        assert_eq!(code, Some(0), "{out}{log}");
        eventually(PATIENCE * 2, async || waiting(&owner).await == 3).await;
        book(&owner, &[("closed", "5")]).await;
        eventually(PATIENCE * 2, async || receiver.accepted("h") == ["3", "5"]).await;
        replica.stop().await;
    }
}

/// Where no replica has seen them parked before, the label alone tells.
// Guarantee: parked.labels
#[tokio::test(flavor = "multi_thread")]
async fn label_of_a_parked_key_that_was_renamed_while_no_replica_ran_is_noticed() {
    let (_database, owner, receiver, text, replica) = parked().await;
    replica.stop().await;
    rename(&owner, "'open' TO 'fresh'").await;
    book(&owner, &[("fresh", "4")]).await;
    let replica = Replica::start(&parse(&text), "r2");
    let (_, error) = halted(&owner, "h").await;
    assert_eq!(error["code"], "keys_parked", "{error}");
    assert_eq!(receiver.accepted("h"), ["3"], "4 would pass 2");
    replica.stop().await;
}
