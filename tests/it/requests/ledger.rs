//! `outbox.enqueue` and `outbox.enqueue_once`, called as the application's role.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::future::join_all;
use outbox_relay::jobs::ledger::{self, NamedRequest};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{clients, having, welcome};
use crate::support::{database, sessions};

/// The error of a statement: SQLSTATE, message, detail.
async fn refused(client: &Client, sql: &str) -> (String, String, String) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error:?}"));
    let detail = error.detail().unwrap_or_default().to_owned();
    (error.code().code().to_owned(), error.message().to_owned(), detail)
}

// Guarantee: requests.one-per-key
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_that_ask_for_the_same_at_once_get_one_request() {
    let database = database().await;
    let (owner, _app) = clients(&database).await;
    let sessions = join_all((0..100).map(|_| database.connect("app"))).await;
    let answers = join_all(sessions.iter().map(|session| welcome(session, "ada"))).await;
    let ids: BTreeSet<&String> = answers.iter().map(|(id, _, _)| id).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(_, status, sent)| status == "pending" && !sent), "{answers:?}");
    assert_eq!(having(&owner, "pending").await, 1);
}

// Guarantee: requests.transaction
#[tokio::test(flavor = "multi_thread")]
async fn a_request_lives_and_dies_with_the_callers_transaction() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    app.batch_execute("BEGIN; SELECT outbox.enqueue('ada', 'welcome'); ROLLBACK").await.unwrap();
    assert_eq!(having(&owner, "pending").await, 0);
    app.batch_execute("BEGIN; SELECT outbox.enqueue('ada', 'welcome'); COMMIT").await.unwrap();
    assert_eq!(having(&owner, "pending").await, 1);
}

// Guarantee: requests.states
#[tokio::test(flavor = "multi_thread")]
async fn each_state_of_a_request_has_its_answer_and_only_retry_failed_arms_a_failed_one_again() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let (id, ..) = welcome(&app, "ada").await;
    for (status, sent) in
        [("pending", false), ("processing", false), ("completed", true), ("failed", false), ("unknown", false)]
    {
        owner
            .execute(
                "UPDATE outbox.request SET status = $1, token = 't', claimed_by = 'r', expires_at = now(), attempts = 3, \
                 error = '{}', body = 'b', completed_at = CASE WHEN $1 = 'completed' THEN now() END",
                &[&status],
            )
            .await
            .unwrap();
        assert_eq!(welcome(&app, "ada").await, (id.clone(), status.to_owned(), sent));
        let sql = "SELECT status FROM outbox.enqueue_once('ada:welcome', 'ada', 'welcome', retry_failed => true)";
        let answer: String = app.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(answer, if status == "failed" { "pending" } else { status });
        let sql = "SELECT attempts = 0 AND error IS NULL AND body IS NULL FROM outbox.request";
        let again: bool = owner.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(again, status == "failed", "{status}");
    }
}

// Guarantee: requests.refused-calls
#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_or_id_with_another_body_is_an_error_that_says_what_differs() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let (id, ..) = welcome(&app, "ada").await;
    let (code, message, detail) =
        refused(&app, "SELECT outbox.enqueue_once('ada:welcome', 'eve', 'reset', '{\"a\": 1}')").await;
    assert_eq!(code, "OX002");
    assert!(message.contains(&format!("dedupe_key \"ada:welcome\" belongs to request {id}")), "{message}");
    assert_eq!(detail, "user_id differs, template differs, parameters differ");
    let (code, _, detail) =
        refused(&app, &format!("SELECT outbox.enqueue_once('k', 'ada', 'welcome', request_id => '{id}')")).await;
    assert_eq!((code.as_str(), detail.as_str()), ("OX002", "dedupe_key differs"));
    assert_eq!(having(&owner, "pending").await, 1);
}

// Guarantee: requests.one-per-key
#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_id_twice_gets_the_first_answer() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let id = "0190a3b2-0000-7000-8000-000000000001";
    for call in ["enqueue('ada', 'welcome', '{}', ID)", "enqueue('ada', 'welcome', request_id => ID)"] {
        let sql = format!("SELECT outbox.{}::text", call.replace("ID", &format!("'{id}'")));
        assert_eq!(app.query_one(&sql, &[]).await.unwrap().get::<_, String>(0), id);
    }
    let once = format!(
        "SELECT request_id::text FROM outbox.enqueue_once('k', 'bob', 'reset', request_id => '{}')",
        id.replace('1', "2")
    );
    let first: String = app.query_one(&once, &[]).await.unwrap().get(0);
    // Another id for a key that is held: the request that holds it.
    let other = once.replace(&first, "0190a3b2-0000-7000-8000-000000000009");
    assert_eq!(app.query_one(&other, &[]).await.unwrap().get::<_, String>(0), first);
    assert_eq!(having(&owner, "pending").await, 2);
}

// Guarantee: requests.dedupe-for
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_after_dedupe_for_but_never_while_its_request_has_not_ended() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let call = "SELECT request_id::text FROM outbox.enqueue_once('k', 'ada', 'welcome', dedupe_for => '1 hour')";
    let ask = async || app.query_one(call, &[]).await.unwrap().get::<_, String>(0);
    let first = ask().await;
    owner.batch_execute("UPDATE outbox.request SET dedupe_until = now() - interval '1 second'").await.unwrap();
    for status in ["pending", "unknown"] {
        owner.execute("UPDATE outbox.request SET status = $1", &[&status]).await.unwrap();
        assert_eq!(ask().await, first, "{status}");
    }
    owner.batch_execute("UPDATE outbox.request SET status = 'completed', completed_at = now()").await.unwrap();
    // Also when many find it at once.
    let sessions = join_all((0..20).map(|_| database.connect("app"))).await;
    let answers = join_all(sessions.iter().map(|session| session.query_one(call, &[]))).await;
    let ids: BTreeSet<String> = answers.into_iter().map(|answer| answer.unwrap().get(0)).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert!(!ids.contains(&first));
    let held: i64 = owner.query_one("SELECT count(*) FROM outbox.request WHERE holds_key", &[]).await.unwrap().get(0);
    assert_eq!(held, 1);
}

// Guarantee: requests.refused-calls
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_at_the_call() {
    let database = database().await;
    let (_owner, app) = clients(&database).await;
    let long = "k".repeat(1_025);
    for (call, code, says) in [
        ("enqueue('ada', 'nothing')", "OX001", "unknown template \"nothing\""),
        ("enqueue('ada', NULL)", "OX001", "unknown template"),
        ("enqueue('', 'welcome')", "OX004", "user_id is missing"),
        ("enqueue('ada', 'welcome', '[1]')", "OX004", "parameters are a JSON array"),
        ("enqueue('ada', 'welcome', '\"\\u0000\"')", "22P05", "Unicode"),
        ("enqueue_once(NULL, 'ada', 'welcome')", "OX004", "dedupe_key is NULL"),
        ("enqueue_once('', 'ada', 'welcome')", "OX004", "dedupe_key has 0 bytes"),
        (&format!("enqueue_once('{long}', 'ada', 'welcome')"), "OX004", "dedupe_key has 1025 bytes"),
        ("enqueue_once('k', 'ada', 'welcome', dedupe_for => '-1 day')", "OX004", "dedupe_for"),
        ("enqueue('ada', 'welcome', not_before => 'infinity')", "OX004", "not_before is infinite"),
        (
            "enqueue('ada', 'welcome', jsonb_build_object('a', repeat('x', 1048576)))",
            "OX004",
            "parameters have 1048585",
        ),
    ] {
        let (found, message, _) = refused(&app, &format!("SELECT outbox.{call}")).await;
        assert_eq!(found, code, "{call}: {message}");
        assert!(message.contains(says), "{call}: {message}");
    }
}

// Guarantee: requests.roles
#[tokio::test(flavor = "multi_thread")]
async fn an_application_may_ask_and_see_nothing_of_what_others_asked_for() {
    let database = database().await;
    let (_owner, app) = clients(&database).await;
    for sql in ["SELECT FROM outbox.request", "SELECT FROM outbox.template", "DELETE FROM outbox.request"] {
        let error = app.batch_execute(sql).await.expect_err(sql);
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}");
    }
    // Whatever the caller's path and temporary tables say.
    app.batch_execute(
        "CREATE TEMPORARY TABLE request (x int); CREATE TEMPORARY TABLE template (name text, relay text); \
         SET search_path = pg_temp, public; SELECT outbox.enqueue('ada', 'welcome')",
    )
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_are_uuids_of_version_7_in_the_order_of_their_milliseconds() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    // The clock is read before and after each one: however long the machine pauses, its instant lies between them.
    let sql = "SELECT outbox.uuid7()::text, before.at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
                      pg_sleep(0.002)::text \
               FROM generate_series(1, 50) AS g (i), \
                    LATERAL (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 0 * g.i AS at OFFSET 0) AS before";
    let rows = owner.query(sql, &[]).await.unwrap();
    let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    for (id, row) in ids.iter().zip(&rows) {
        assert!(&id[14..15] == "7" && "89ab".contains(&id[19..20]), "{id}");
        let millis = i64::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
        let (before, after): (i64, i64) = (row.get(1), row.get(2));
        assert!((before..=after).contains(&millis), "{id}: {before} <= {millis} <= {after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_the_callers_own_do_not_run_as_the_functions_owner() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    app.batch_execute(
        "CREATE FUNCTION pg_temp.trap(v pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN \
         IF current_user <> 'app' THEN RAISE EXCEPTION 'runs as %', current_user; END IF; RETURN true; END $$; \
         CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.trap(value)); \
         CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (pg_temp.trap('x'))",
    )
    .await
    .unwrap();
    app.batch_execute("SELECT * FROM outbox.enqueue_once('k'::pg_catalog.text, 'ada', 'welcome')").await.unwrap();
    app.batch_execute("SELECT outbox.enqueue('ada', 'welcome')").await.unwrap();
    // And every function that runs as its owner says where names are looked up, the caller's own last.
    let sql = "SELECT string_agg(p.proname, ', ') FROM pg_proc AS p WHERE p.pronamespace = 'outbox'::regnamespace AND p.prosecdef \
               AND NOT COALESCE(p.proconfig::text LIKE '%search_path=pg_catalog, pg_temp%', false)";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, Option<String>>(0), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_whose_key_another_has_taken_is_not_sent_again() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let id = "0190a3b2-0000-7000-8000-000000000001";
    let call = format!(
        "SELECT status FROM outbox.enqueue_once('k', 'ada', 'welcome', request_id => '{id}', \
                        dedupe_for => '1 hour', retry_failed => true)"
    );
    app.query_one(&call, &[]).await.unwrap();
    owner.batch_execute("UPDATE outbox.request SET status = 'failed', dedupe_until = now()").await.unwrap();
    app.query_one("SELECT outbox.enqueue_once('k', 'ada', 'welcome')", &[]).await.unwrap();
    assert_eq!(having(&owner, "pending").await, 1);
    assert_eq!(app.query_one(&call, &[]).await.unwrap().get::<_, &str>(0), "failed");
    assert_eq!(having(&owner, "pending").await, 1, "the key has been taken by another request");
}

// Guarantee: pending.runner
#[tokio::test]
async fn claim_whose_row_is_locked_is_said_not_to_be_renewed() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "INSERT INTO outbox.template (name, relay) VALUES ('jobs', 'jobs'); \
             SELECT outbox.enqueue('u' || i, 'jobs') FROM generate_series(1, 4) AS i; \
             UPDATE outbox.request SET status = CASE user_id WHEN 'u3' THEN 'unknown' ELSE 'processing' END, \
             token = CASE user_id WHEN 'u4' THEN 'theirs' ELSE 'ours' END, claimed_by = 'r', expires_at = now()",
        )
        .await
        .unwrap();
    let ids: Vec<String> = owner
        .query("SELECT request_id::text FROM outbox.request ORDER BY user_id", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let held = database.connect("postgres").await;
    held.batch_execute(&format!("BEGIN; SELECT FROM outbox.request WHERE request_id = '{}' FOR UPDATE", ids[0]))
        .await
        .unwrap();
    let session = sessions(&database, "relay", "test").open().await.unwrap();
    let claims: Vec<NamedRequest<'_>> = ids.iter().map(|id| NamedRequest { id, token: "ours" }).collect();
    let kept = ledger::keep(&session, Duration::from_secs(10), &claims).await.unwrap();
    let ours = [(&ids[0], false), (&ids[1], true), (&ids[2], true)].map(|(id, renewed)| (id.clone(), renewed));
    assert_eq!(kept, HashMap::from(ours), "locked; renewed; given up and not taken; the fourth is another's");
    let longer = "SELECT array_agg(expires_at > now() + interval '5 seconds' ORDER BY user_id) FROM outbox.request";
    assert_eq!(owner.query_one(longer, &[]).await.unwrap().get::<_, Vec<bool>>(0), [false, true, false, false]);
}
