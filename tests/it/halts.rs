//! A halt ends when it may, and not by the way.

use outbox_relay::cursor::{self, Adoption, ErrorReport, RelayFacts};
use tokio_postgres::Client;

use crate::support::reader::sessions;
use crate::support::{Database, database};

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
