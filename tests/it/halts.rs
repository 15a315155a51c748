//! A halt ends when it may, and not by the way.

use std::time::Duration;

use outbox_relay::cursor::{self, Adoption, ErrorReport, RelayFacts};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{line, printed, stdout_relay};
use crate::support::reader::sessions;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

const REAL: &str = "f1";
const CHECK: &str = "check:f2";

async fn status(owner: &Client) -> (bool, Option<String>, bool) {
    let sql = "SELECT halted, fingerprint, circuit_opened_at IS NOT NULL FROM outbox.cursor_status WHERE cursor = 'c'";
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

async fn cursor(database: &Database) -> Client {
    let owner = database.connect("postgres").await;
    owner
        .batch_execute("INSERT INTO outbox.cursor (name, relay, identity, relations) VALUES ('c', 'c', '{\"table\": \"a\"}', '{1,1}')")
        .await
        .unwrap();
    owner
}

const ERROR: ErrorReport<'_> = ErrorReport { class: "fatal", code: "x", message: "m", hint: "h", message_id: None };

// Guarantee: failures.halt-end
#[tokio::test]
async fn neither_a_success_nor_a_check_ends_a_halt_that_a_turn_has_found() {
    let database = database().await;
    let owner = cursor(&database).await;
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    let report = async |halted, circuit| cursor::report(&session, "c", &ERROR, halted, circuit).await.unwrap();
    report(Some(REAL), None).await;
    let halted = (true, Some(REAL.to_owned()), false);
    for circuit in [None, Some(true), Some(false)] {
        report(None, circuit).await;
        assert_eq!(status(&owner).await, halted, "a later error that does not halt");
    }
    report(Some(CHECK), None).await;
    assert_eq!(status(&owner).await, halted, "a check");
    for stale in [None, Some(CHECK), Some("f3")] {
        cursor::clear(&session, "c", stale).await.unwrap();
        assert_eq!(status(&owner).await, halted, "another's success or check");
    }
    cursor::clear(&session, "c", Some(REAL)).await.unwrap();
    assert_eq!(status(&owner).await, (false, None, false));

    report(Some(CHECK), None).await;
    let since = "SELECT last_error ->> 'at' FROM outbox.cursor_status";
    let before: String = owner.query_one(since, &[]).await.unwrap().get(0);
    report(Some(CHECK), None).await;
    assert_eq!(owner.query_one(since, &[]).await.unwrap().get::<_, String>(0), before, "the same check is no news");
    cursor::clear(&session, "c", None).await.unwrap();
    assert_eq!(status(&owner).await, (false, None, false), "a check of a process that is configured in another way");
    report(Some(CHECK), None).await;
    report(Some(REAL), None).await;
    assert_eq!(status(&owner).await, halted, "a check's halt gives way");
}

// Guarantee: failures.halt-side-by-side
#[tokio::test]
async fn a_halt_counts_for_the_configurations_that_have_halted_and_an_operators_decision_for_all() {
    let database = database().await;
    let owner = cursor(&database).await;
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    let report = async |code: &str, fingerprint: &str| {
        let error = ErrorReport { code, ..ERROR };
        cursor::report(&session, "c", &error, Some(fingerprint), Some(false)).await.unwrap();
    };
    let counts = async || {
        let scope = cursor::standings(&session, &["c"]).await.unwrap()[0].halted.clone().unwrap();
        assert_eq!(cursor::halt(&session, "c").await.unwrap().unwrap().scope, scope);
        ["f1", "f2", "f3"].map(|fingerprint| scope.counts_for(fingerprint))
    };
    let forget = async || owner.batch_execute("DELETE FROM outbox.cursor_status").await.unwrap();
    report("http_401", "f1").await;
    assert_eq!(counts().await, [true, false, false], "another configuration may be the fix");
    report("http_401", "f2").await;
    report("twilio_21211", "f1").await;
    assert_eq!(counts().await, [true, true, false], "both have halted since");
    report("order_changed", "f1").await;
    report("http_401", "f1").await;
    assert_eq!(
        cursor::halt(&session, "c").await.unwrap().unwrap().code,
        "order_changed",
        "that is still to be decided"
    );
    forget().await;
    report("http_401", "f1").await;
    report("twilio_21211", "f2").await;
    cursor::clear(&session, "c", Some("f1")).await.unwrap();
    assert_eq!(status(&owner).await, (true, Some("f1 f2".to_owned()), false), "it is another halt by now");
    for code in [
        "cursor_deleted",
        "horizon_rule_changed",
        "late_row",
        "order_changed",
        "position_in_future",
        "table_subscribed",
    ] {
        forget().await;
        report(code, "f1").await;
        assert_eq!(counts().await, [true; 3], "{code}");
    }
    forget().await;
    report("table_missing", "check:f1").await;
    assert_eq!(counts().await, [false; 3], "whose checks pass runs");
}

// Guarantee: failures.halt-side-by-side
#[tokio::test(flavor = "multi_thread")]
async fn replicas_with_different_settings_do_not_send_a_refused_message_in_turns() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = |timeout: &str| {
        toml(&database, "relay", None, &sms_relay("sms", &gateway, &format!("timeout = \"{timeout}\"")))
    };
    let replicas = ["1s", "2s"].map(|timeout| Process::spawn(&text(timeout), &["run", "--replica-id", timeout]));
    for replica in &replicas {
        line(replica, "relay ready").await;
    }
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let both = "SELECT count(*) FROM outbox.cursor_status WHERE halted AND fingerprint LIKE '% %'";
    eventually(PATIENCE * 2, async || owner.query_one(both, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    let asked = gateway.asked().len();
    // As long as several turns of each would take.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!((asked, gateway.asked().len()), (2, 2), "each configuration tries it once");
    gateway.set(Mood::Accept);
    let (code, _, log) = outbox_relay(&text("1s"), &["cursor", "resume", "sms"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 2, async || gateway.accepted() == ["1"]).await;
}

// Guarantee: failures.halt-side-by-side
#[tokio::test(flavor = "multi_thread")]
async fn a_halt_of_another_configuration_outlasts_checks_that_run_again_and_ends_at_a_start() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("c", ""));
    let mut process = Process::spawn(&text, &["run"]);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE * 2, async || printed(&process, "c") == ["1"]).await;
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    cursor::report(&session, "c", &ERROR, Some(REAL), None).await.unwrap();
    // A redriven letter has the checks run again.
    let letter = "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, \
                  dead_lettered_by) SELECT 'c', 'public.bookings', created_at, id::text, 'stdout', '-', '{}', '{}', '{}', 'r' \
                  FROM bookings";
    owner.batch_execute(letter).await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "c", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 2, async || printed(&process, "c") == ["1", "1"]).await;
    assert!(process.log().matches("\"relay ready\"").count() > 1, "{}", process.log());
    assert_eq!(
        status(&owner).await,
        (true, Some(REAL.to_owned()), false),
        "the halt of a replica that runs beside this one"
    );
    owner
        .batch_execute(
            "UPDATE outbox.cursor_status SET last_error = last_error || jsonb_build_object('at', now() - interval '6 minutes'); \
             INSERT INTO bookings DEFAULT VALUES",
        )
        .await
        .unwrap();
    eventually(PATIENCE * 2, async || !status(&owner).await.0).await;
    cursor::report(&session, "c", &ERROR, Some(REAL), None).await.unwrap();
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || !status(&owner).await.0).await;
}

#[tokio::test]
async fn a_report_that_says_nothing_of_the_sink_leaves_its_circuit_and_the_time_of_its_last_try() {
    let database = database().await;
    let owner = cursor(&database).await;
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    cursor::report(&session, "c", &ERROR, None, Some(true)).await.unwrap();
    let tried = "SELECT updated_at::text || circuit_opened_at::text FROM outbox.cursor_status";
    let before: String = owner.query_one(tried, &[]).await.unwrap().get(0);
    cursor::report(&session, "c", &ERROR, None, None).await.unwrap();
    assert_eq!(owner.query_one(tried, &[]).await.unwrap().get::<_, String>(0), before);
    cursor::clear(&session, "c", None).await.unwrap();
    assert_eq!(status(&owner).await, (false, None, false), "a success closes it");
}

#[tokio::test]
async fn an_adoption_is_for_exactly_the_facts_that_were_shown_and_every_other_relay_is_refused() {
    let database = database().await;
    let mut owner = cursor(&database).await;
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    let (identity, relations) = ("{\"table\": \"b\"}", [7, 8].into());
    let facts = RelayFacts { identity, root: 7, relations: &relations };
    assert!(cursor::foreign_identity(&session, "c", facts).await.unwrap().is_some());
    let adopt = Adoption {
        number: 0,
        identity: serde_json::from_str(identity).unwrap(),
        root: 7,
        relations: relations.clone(),
        partitions: None,
    };
    let order = cursor::Order { adopt: Some(&adopt), ..cursor::Order::default() };
    cursor::order(&mut owner, "c", &order, ("cursor adopt", "test", &serde_json::json!({}))).await.unwrap().unwrap();
    assert_eq!(cursor::foreign_identity(&session, "c", facts).await.unwrap(), None);
    let grown = [7, 8, 9].into();
    for other in [RelayFacts { root: 8, ..facts }, RelayFacts { relations: &grown, ..facts }] {
        let refused = cursor::foreign_identity(&session, "c", other).await.unwrap();
        assert!(refused.is_some_and(|known| known.contains("\"a\"")), "{other:?}");
    }
}
