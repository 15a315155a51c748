//! `where` of due work over an enum whose labels change while a relay runs.

use outbox_relay::source;
use outbox_relay::source::lane::Reach;
use outbox_relay::source::pending::{Due, Taking, inspect};
use tokio_postgres::Client;

use super::rename;
use crate::ordering::plans::plan;
use crate::support::outside::halted;
use crate::support::receiver::Receiver;
use crate::support::{Database, PATIENCE, Process, config, database, eventually, sessions, toml};

/// A table with a column of an enum, and an index of the rows that are open.
async fn table() -> (Database, Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE SCHEMA hidden; CREATE TYPE hidden.state AS ENUM ('open', 'closed'); \
             CREATE TABLE jobs (id bigint PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(), sent boolean NOT NULL DEFAULT false, \
             state hidden.state); CREATE INDEX jobs_open ON jobs (due, id) WHERE NOT sent AND state = 'open'; \
             GRANT SELECT, UPDATE (sent) ON jobs TO relay",
        )
        .await
        .unwrap();
    (database, owner)
}

/// A relay of what is open; `more` stands below `[[relay]]`, `turn` is a section.
fn jobs(receiver: &Receiver, [more, turn]: [&str; 2]) -> String {
    format!(
        "[[relay]]\nname = \"jobs\"\n{more}\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\n\
         sent = \"sent\"\nwhere = {{ state = \"open\" }}\n{turn}\n[relay.sink.http]\nurl = \"{}/jobs\"\n",
        receiver.url()
    )
}

/// A replica that has sent the first of two rows, which alone is open.
async fn stage(settings: [&str; 2]) -> (Database, Client, Receiver, Process) {
    let ((database, owner), receiver) = (table().await, Receiver::start());
    let process = Process::spawn(&toml(&database, "relay", None, &jobs(&receiver, settings)), &["run"]);
    insert(&owner, &[(1, "open"), (2, "closed")]).await;
    eventually(PATIENCE * 2, async || accepted(&receiver) == ["1"]).await;
    (database, owner, receiver, process)
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

async fn unsent(owner: &Client) -> Vec<i64> {
    let rows = owner.query("SELECT id FROM jobs WHERE NOT sent ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// What was closed is open now, and the other way round: a session's prepared statements have the value that was open.
// Guarantee: pending.labels
#[tokio::test(flavor = "multi_thread")]
async fn due_rows_are_sent_by_the_label_that_they_have_when_they_are_claimed() {
    for settings in [["", ""], ["guarantee = \"at_most_once\"", ""], ["", "[relay.turn]\nin_flight = 2"]] {
        let (_database, owner, receiver, _process) = stage(settings).await;
        rename(&owner, "'open' TO 'other'; 'closed' TO 'open'; 'other' TO 'closed'").await;
        insert(&owner, &[(3, "closed"), (4, "open")]).await;
        eventually(PATIENCE * 2, async || accepted(&receiver) == ["1", "2", "4"]).await;
        insert(&owner, &[(5, "closed"), (6, "open")]).await;
        eventually(PATIENCE, async || accepted(&receiver).len() >= 4 && unsent(&owner).await == [3, 5]).await;
        assert_eq!(accepted(&receiver), ["1", "2", "4", "6"], "{settings:?}");
        // Back again: a statement of that time would do, and one of the time between would not.
        rename(&owner, "'open' TO 'other'; 'closed' TO 'open'; 'other' TO 'closed'").await;
        insert(&owner, &[(7, "closed")]).await;
        // Under at_most_once a row is marked before it is sent.
        eventually(PATIENCE * 2, async || accepted(&receiver).len() >= 6 && unsent(&owner).await == [7]).await;
        assert_eq!(accepted(&receiver), ["1", "2", "3", "4", "5", "6"], "{settings:?}");
    }
}

// Guarantee: pending.labels
#[tokio::test(flavor = "multi_thread")]
async fn relay_of_due_rows_halts_while_its_enum_does_not_have_the_label() {
    let (_database, owner, receiver, _process) = stage(["", ""]).await;
    rename(&owner, "'open' TO 'fresh'").await;
    insert(&owner, &[(3, "closed"), (4, "fresh")]).await;
    let (_, error) = halted(&owner, "jobs").await;
    assert_eq!(error["code"], "column_unreadable", "{error}");
    for (key, part) in [
        ("message", "where compares public.jobs.state with \"open\""),
        ("message", "hidden.state"),
        ("hint", "relay.source.pending.where"),
    ] {
        assert!(error[key].as_str().unwrap().contains(part), "{error}");
    }
    assert_eq!(accepted(&receiver), ["1"]);
    rename(&owner, "'fresh' TO 'open'").await;
    eventually(PATIENCE * 2, async || accepted(&receiver) == ["1", "4"]).await;
}

/// Labels that are compared when a row is read prove nothing to the planner: the constant beside them does.
// Guarantee: pending.labels
#[tokio::test]
async fn looks_and_claims_over_an_enum_use_the_index_of_the_rows_that_are_open() {
    let ((database, owner), receiver) = (table().await, Receiver::start());
    owner
        .batch_execute(
            "INSERT INTO jobs (id, due, state) SELECT n, now() - n * interval '1 second', \
             (CASE WHEN n % 100 = 0 THEN 'open' ELSE 'closed' END)::hidden.state FROM generate_series(1, 20000) AS n; ANALYZE jobs",
        )
        .await
        .unwrap();
    let config = config(&database, "relay", None, &jobs(&receiver, ["", "[relay.turn]\nin_flight = 2"]));
    let source::Config::Pending(pending) = &config.relays[0].source else { panic!("due work") };
    let session = sessions(&database, "relay", "plans").open().await.unwrap();
    let due = Due::new(&inspect(&session, pending).await.unwrap().unwrap(), pending);
    let (look, claim) = ("'jobs', NULL", "'jobs', NULL, now(), 't', 'r', 1.0");
    let reach = Reach { jobs: 10, probes: false };
    for (sql, parameters) in [
        (due.look_sql(), look),
        (due.lane_look_sql(10), look),
        (due.claim_sql(&[], Taking::MarkLater, 10), claim),
        (due.claim_sql(&[], Taking::MarkFirst, 10), claim),
        (due.lane_claim_sql(&[], Taking::MarkLater, reach), "'jobs', NULL, now(), 't', 'r', 1.0, 10"),
        (due.backlog_sql(), "'jobs', 10000"),
    ] {
        let plan = plan(&session, &sql, parameters).await;
        assert!(plan.contains("jobs_open"), "{sql}\n{plan}");
    }
}
