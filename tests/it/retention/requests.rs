//! Completed requests and resolved dead letters.

use std::collections::BTreeSet;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{TIMES, prune, told};
use crate::support::outside::{json, stdout_relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Requests of every status, 100 days old unless their name says `young`; a name is the user of the request.
const REQUESTS: &str = "
    INSERT INTO outbox.request (request_id, user_id, template, parameters, relay, status, dedupe_key, holds_key,
        dedupe_until, not_before, token, claimed_by, expires_at, completed_at, updated_at)
    SELECT gen_random_uuid(), name, 't', '{}', 'r', status, CASE WHEN until <> 'no key' THEN name END, until <> 'no key',
        CASE until WHEN 'passed' THEN now() - interval '1 day' WHEN 'runs' THEN now() + interval '1 day' END,
        now(), 'x', 'x', now(), CASE WHEN status = 'completed' THEN now() - age END, now() - age
    FROM (VALUES ('plain', 'completed', 'no key'), ('passed', 'completed', 'passed'), ('runs', 'completed', 'runs'),
        ('indefinitely', 'completed', 'never'), ('failed', 'failed', 'passed'), ('unknown', 'unknown', 'no key'),
        ('pending', 'pending', 'no key'), ('processing', 'processing', 'passed'), ('young', 'completed', 'no key'))
        AS r (name, status, until), LATERAL (SELECT CASE WHEN name = 'young' THEN interval '89 days'
        ELSE interval '100 days' END AS age) AS a";

/// Dead letters of every state of the cursor `c`, resolved 100 days ago unless their id says `young`.
const LETTERS: &str = "
    INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error,
        state, dead_lettered_at, dead_lettered_by, resolved_at)
    SELECT 'c', 'public.t', now(), id, 'http', 'x', '{}', '{}', '{}', state, now() - interval '200 days', 'x',
        CASE WHEN state IN ('redriven', 'discarded')
             THEN now() - CASE id WHEN 'young' THEN interval '1 day' ELSE interval '100 days' END END
    FROM (VALUES ('open', 'dead'), ('asked for', 'redriving'), ('sent', 'redriven'), ('given up', 'discarded'),
        ('young', 'discarded')) AS d (id, state)";

async fn texts(owner: &Client, sql: &str) -> BTreeSet<String> {
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn users(owner: &Client) -> BTreeSet<String> {
    texts(owner, "SELECT user_id FROM outbox.request").await
}

async fn letters(owner: &Client) -> BTreeSet<String> {
    texts(owner, "SELECT message_id FROM outbox.dead_letter").await
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

async fn stage() -> (Database, Client, String) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(&format!("{REQUESTS}; {LETTERS}")).await.unwrap();
    let text = toml(&database, "relay", None, TIMES);
    (database, owner, text)
}

/// Failed ones that were given up: one whose key is free, and one whose key holds indefinitely.
const DISCARDED: &str = "
    UPDATE outbox.request SET error = '{\"code\": \"discarded\"}' WHERE user_id = 'failed';
    INSERT INTO outbox.request (request_id, user_id, template, parameters, relay, status, dedupe_key, holds_key, not_before, updated_at, error)
    VALUES (gen_random_uuid(), 'held', 't', '{}', 'r', 'failed', 'held', true, now(), now() - interval '100 days', '{\"code\": \"discarded\"}')";

const KEPT_REQUESTS: [&str; 7] = ["runs", "indefinitely", "failed", "unknown", "pending", "processing", "young"];

// Guarantee: retention.records
#[tokio::test(flavor = "multi_thread")]
async fn completed_requests_and_resolved_letters_go_after_their_time_and_what_is_needed_stays_and_is_told() {
    let (_database, owner, text) = stage().await;
    let (before, letters_before) = (users(&owner).await, letters(&owner).await);
    let document = prune(&text, "--dry-run").await;
    let kept = vec![
        (Some(1), "dedupe_until has not passed"),
        (Some(1), "dedupe_key without an end"),
        (Some(1), "failed: a person decides"),
        (Some(1), "unknown: a person decides"),
    ];
    assert_eq!(told(&document, "completed_requests", "outbox.request"), (2, 0, kept));
    let open = vec![(Some(2), "open dead letters of cursor c")];
    assert_eq!(told(&document, "dead_letters", "outbox.dead_letter"), (2, 0, open));
    assert_eq!((users(&owner).await, letters(&owner).await), (before, letters_before), "a dry run changes nothing");
    assert!(texts(&owner, "SELECT verb FROM outbox.operation").await.is_empty());

    let (code, _, log) = outbox_relay(&text, &["prune"]).await;
    assert_eq!(code, Some(2), "nobody can be asked: {log}");
    assert_eq!(users(&owner).await.len(), 9);

    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "completed_requests", "outbox.request").1, 2);
    assert_eq!(told(&document, "dead_letters", "outbox.dead_letter").1, 2);
    assert_eq!(users(&owner).await, set(KEPT_REQUESTS));
    assert_eq!(letters(&owner).await, set(["open", "asked for", "young"]));
    let row = owner.query_one("SELECT operator, verb, detail::text FROM outbox.operation", &[]).await.unwrap();
    assert!(row.get::<_, String>(0).starts_with("relay/"), "the role, and the system's user");
    assert_eq!(row.get::<_, String>(1), "prune");
    assert_eq!(json(row.get(2))["pruned"].as_array().unwrap().len(), 2);
    let (code, _, log) = outbox_relay(&text, &["prune"]).await;
    assert_eq!((code, log.as_str()), (Some(0), "nothing to prune\n"), "then nobody need be asked");
}

// Guarantee: retention.records
#[tokio::test(flavor = "multi_thread")]
async fn discarded_requests_go_like_completed_ones() {
    let (_database, owner, text) = stage().await;
    owner.batch_execute(DISCARDED).await.unwrap();
    let document = prune(&text, "--dry-run").await;
    let kept = vec![
        (Some(1), "dedupe_until has not passed"),
        (Some(2), "dedupe_key without an end"),
        (Some(1), "unknown: a person decides"),
    ];
    assert_eq!(told(&document, "completed_requests", "outbox.request"), (3, 0, kept));
    let document = prune(&text, "--yes").await;
    assert_eq!(told(&document, "completed_requests", "outbox.request").1, 3);
    let mut left = set(KEPT_REQUESTS);
    left.remove("failed");
    left.insert("held".to_owned());
    assert_eq!(users(&owner).await, left);
}

// Guarantee: retention.configured
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pruned_without_a_time() {
    let (database, owner, _) = stage().await;
    let text = toml(&database, "relay", None, "[retention]\nevery = \"1s\"\n");
    assert_eq!(prune(&text, "--yes").await, serde_json::json!({ "prune": [] }));
    assert_eq!((users(&owner).await.len(), letters(&owner).await.len()), (9, 5));
}

// Guarantee: retention.role
#[tokio::test(flavor = "multi_thread")]
async fn the_relays_role_can_prune_by_the_rules_alone() {
    let (database, owner, _) = stage().await;
    let relay = database.connect("relay").await;
    let denied = relay.batch_execute("DELETE FROM outbox.dead_letter").await.expect_err("no DELETE");
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    let before = (users(&owner).await, letters(&owner).await);
    for sql in [
        "SELECT outbox.prune_requests(NULL, 100)",
        "SELECT outbox.prune_requests('0', NULL)",
        "SELECT outbox.prune_dead_letters(NULL, 100)",
        "SELECT outbox.prune_dead_letters('0', NULL)",
    ] {
        let gone: Option<i32> = relay.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(gone, None, "{sql}");
    }
    assert_eq!((users(&owner).await, letters(&owner).await), before, "no age, or no number, is not all");
    for sql in ["SELECT outbox.prune_requests('-1000 years', 100)", "SELECT outbox.prune_dead_letters('0', 100)"] {
        relay.batch_execute(sql).await.unwrap();
    }
    let young = KEPT_REQUESTS.into_iter().filter(|name| *name != "young").map(str::to_owned).collect();
    assert_eq!(users(&owner).await, young, "whatever age is asked for");
    assert_eq!(letters(&owner).await, set(["open", "asked for"]));
    let app = database.connect("app").await;
    owner.batch_execute("GRANT USAGE ON SCHEMA outbox TO app").await.unwrap();
    for sql in ["SELECT outbox.prune_requests('0', 100)", "SELECT outbox.prune_dead_letters('0', 100)"] {
        let denied = app.batch_execute(sql).await.expect_err("no EXECUTE");
        assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_at_its_limit_says_what_is_gone() {
    let (_database, owner, text) = stage().await;
    // Each statement takes longer than the limit, so that it is reached within the first batch of the requests.
    owner
        .batch_execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(6); RETURN NULL; END'; \
             CREATE TRIGGER slow AFTER DELETE ON outbox.request FOR EACH STATEMENT EXECUTE FUNCTION slow()",
        )
        .await
        .unwrap();
    let before = letters(&owner).await;
    let (code, out, log) = outbox_relay(&text, &["prune", "--yes", "--timeout", "5s"]).await;
    assert_eq!(code, Some(1), "{out}{log}");
    assert!(out.contains("completed_requests outbox.request: 2 gone\n"), "{out}{log}");
    assert!(log.contains("error: the limit of 5s (--timeout) was reached"), "{log}");
    assert_eq!(users(&owner).await, set(KEPT_REQUESTS));
    assert_eq!(letters(&owner).await, before, "it ends after its batch");
    let sql = "SELECT detail->'pruned'->0->>'rows' FROM outbox.operation WHERE verb = 'prune'";
    assert_eq!(texts(&owner, sql).await, set(["2"]));
}

// Guarantee: retention.one-at-a-time
#[tokio::test(flavor = "multi_thread")]
async fn run_prunes_by_itself_batch_by_batch_and_only_one_at_a_time() {
    let (database, owner, _) = stage().await;
    owner
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
        CREATE INDEX ON t (created_at, id); GRANT SELECT ON t TO relay",
        )
        .await
        .unwrap();
    owner
        .batch_execute(
            "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, \
             error, state, dead_lettered_by, resolved_at) SELECT 'c', 's', now(), 'n' || i, 'http', 'x', '{}', '{}', '{}', \
             'redriven', 'x', now() - interval '1 year' FROM generate_series(1, 2500) AS i",
        )
        .await
        .unwrap();
    let relay = stdout_relay("s", "").replace("public.bookings", "public.t");
    let text = toml(&database, "relay", None, &format!("{TIMES}{relay}"));
    // The lock that whoever prunes has.
    let other = database.connect("relay").await;
    other.batch_execute("SELECT pg_advisory_lock(31372865378088302)").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["prune", "--yes"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("another prune is under way"), "{log}");
    let (code, out, log) = outbox_relay(&text, &["prune", "--dry-run"]).await;
    assert_eq!(code, Some(0), "looking, and a person who thinks about it, need no right: {log}");
    assert!(out.contains("outbox.request"), "{out}");
    let processes = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    assert_eq!(letters(&owner).await.len(), 2505);
    drop(other);
    let kept = set(["open", "asked for", "young"]);
    eventually(PATIENCE, || async { letters(&owner).await == kept && users(&owner).await == set(KEPT_REQUESTS) }).await;
    let log = || format!("{}{}", processes[0].log(), processes[1].log());
    eventually(PATIENCE, || async { log().matches("\"pruned\"").count() >= 2 }).await;
    let log = log();
    assert_eq!(log.matches("\"pruned\"").count(), 2, "once for each kind, by whoever came first: {log}");
    assert!(log.contains("\"rows\":2502"), "{log}");
}

// Guarantee: retention.large-ledger
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_reads_of_a_large_ledger_only_what_may_go() {
    let (_database, owner, _) = stage().await;
    owner
        .batch_execute(
            "INSERT INTO outbox.request (request_id, user_id, template, parameters, relay, status, dedupe_key, holds_key, \
             not_before, completed_at) SELECT gen_random_uuid(), 'u', 't', '{}', 'r', 'completed', \
             CASE WHEN i % 2 = 0 THEN 'k' || i END, i % 2 = 0, now(), \
             now() - CASE i % 2 WHEN 0 THEN interval '100 days' ELSE interval '1 day' END \
             FROM generate_series(1, 20000) AS i; ANALYZE outbox.request",
        )
        .await
        .unwrap();
    // The function's own statement, as it is stored.
    let sql = "SELECT prosrc FROM pg_proc WHERE oid = 'outbox.prune_requests(interval, integer)'::regprocedure";
    let body: String = owner.query_one(sql, &[]).await.unwrap().get(0);
    let body = body.replace("older_than", "$1").replace("most", "$2");
    owner
        .batch_execute(&format!("PREPARE pass (interval, integer) AS {body}; SET plan_cache_mode = force_generic_plan"))
        .await
        .unwrap();
    let rows =
        owner.query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE pass ('90 days', 1000)", &[]).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("request_completed_at") && plan.contains("Index Cond: (completed_at <"), "{plan}");
    let left_out: i64 = plan
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Rows Removed by Filter: "))
        .map(|rows| rows.parse::<i64>().unwrap())
        .sum();
    assert!(left_out < 10, "neither young ones nor keys without an end: {plan}");
}
