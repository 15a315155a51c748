//! An action that waits for one of the pool's slots has not begun.

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{clients, having, relay};
use crate::support::outside::{json, line, lines};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Twelve tenants' schedules, due now; the last action begins long after the time of one.
const TWELVE: &str = "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query, timeout) \
    SELECT 'report', 'tenant_' || n, 'jobs', now(), $1::text, '4 seconds' FROM generate_series(1, 12) AS n";

/// A relay to this provider whose query takes so long, with a pool of this size.
async fn slow(database: &Database, owner: &Client, provider: &Provider, seconds: f64, pool_size: usize) -> String {
    let role = format!("{}_reporting", database.name);
    owner.batch_execute(&format!("CREATE ROLE {role} NOLOGIN; GRANT {role} TO relay")).await.unwrap();
    let source = format!(
        "role = \"{role}\"\n[relay.source.schedule.queries.slow]\ntimeout = \"30s\"\nsql = \"SELECT 1 AS n FROM pg_sleep({seconds})\""
    );
    let relay = relay(provider, &source, "")
        .replace("timeout = \"1s\"", "timeout = \"6s\"")
        .replace("deadline = \"2s\"", "deadline = \"10s\"");
    with_pool(&toml(database, "relay", None, &relay), pool_size)
}

fn with_pool(text: &str, pool_size: usize) -> String {
    text.replacen('\n', &format!("\npool_size = {pool_size}\n"), 1)
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn actions_that_wait_for_the_queries_of_others_have_all_of_their_time_when_their_own_begins() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = slow(&database, &owner, &provider, 0.6, 5).await;
    app.execute(TWELVE, &[&Some("slow")]).await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, having(&owner, "report", "completed").await), (Some(0), 12), "{log}");
    // They were claimed together, and began one after another: the last waited for the queries of eleven others, 6.6 s at least.
    let begun = "SELECT max(started_at) - min(started_at) > interval '2 seconds' FROM outbox.action";
    assert!(owner.query_one(begun, &[]).await.unwrap().get::<_, bool>(0), "their time counts from the claim: {log}");
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn actions_that_wait_for_the_statements_of_others_have_all_of_their_time_when_their_own_begins() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let table = "CREATE TABLE public.done (tenant text); GRANT INSERT ON public.done TO relay";
    owner.batch_execute(table).await.unwrap();
    let relay = "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.sql]\n\
                 statement = \"INSERT INTO public.done SELECT $1 FROM pg_sleep(0.6)\"\nparameters = [\"tenant\"]\n";
    app.execute(TWELVE, &[&None::<&str>]).await.unwrap();
    let text = with_pool(&toml(&database, "relay", None, relay), 5);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, having(&owner, "report", "completed").await), (Some(0), 12), "{log}");
    let done = "SELECT count(DISTINCT tenant) FROM public.done";
    assert_eq!(owner.query_one(done, &[]).await.unwrap().get::<_, i64>(0), 12);
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_an_action_that_waits_for_the_query_of_another_to_the_next_replica() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    // Two slots, one of which is for queries: the other one is free to record.
    let text = slow(&database, &owner, &provider, 12.0, 7).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query, on_interrupted) \
         SELECT 'report', 'tenant_' || n, 'jobs', now(), 'slow', 'fail' FROM generate_series(1, 2) AS n",
    )
    .await
    .unwrap();
    let mut process = Process::spawn(&text, &["run"]);
    let waits = "SELECT (SELECT count(*) FROM outbox.action WHERE status = 'running') = 2 AND (SELECT count(*) \
                 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep') = 1";
    eventually(PATIENCE * 2, async || owner.query_one(waits, &[]).await.unwrap().get(0)).await;
    process.signal(Signal::TERM);
    // It was not begun, and nothing of it is a failure.
    let left = "SELECT count(*) FILTER (WHERE status = 'due' AND attempts = 0 AND error IS NULL AND started_at IS NULL) = 1 \
                AND count(*) FILTER (WHERE status = 'running') = 1 FROM outbox.action";
    eventually(PATIENCE, async || owner.query_one(left, &[]).await.unwrap().get(0)).await;
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!((having(&owner, "report", "completed").await, provider.count()), (1, 1));
    let said = lines(&process).iter().filter(|line| line["message"] == "action was not begun; it runs later").count();
    assert_eq!((said, process.log().contains("interrupted")), (1, false), "{}", process.log());
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn action_that_is_left_while_it_waits_was_last_begun_when_it_failed() {
    let database = database().await;
    let (owner, _app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    // Two slots, one of which is for queries.
    let text = slow(&database, &owner, &provider, 12.0, 7).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query) \
             SELECT 'report', 'tenant_' || n, 'jobs', 'infinity', 'slow' FROM generate_series(1, 2) AS n; \
             SELECT outbox.make_action(s, now(), false, false, '{}') FROM outbox.schedule AS s; \
             UPDATE outbox.action SET attempts = 1, started_at = '2026-01-01 00:00:00Z'",
        )
        .await
        .unwrap();
    let process = Process::spawn(&text, &["run"]);
    let waits = "SELECT (SELECT count(*) FROM outbox.action WHERE status = 'running') = 2 AND (SELECT count(*) \
                 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep') = 1";
    eventually(PATIENCE * 2, async || owner.query_one(waits, &[]).await.unwrap().get(0)).await;
    process.signal(Signal::TERM);
    let left = "SELECT count(*) = 1 FROM outbox.action \
                WHERE status = 'due' AND attempts = 1 AND error IS NULL AND started_at = '2026-01-01 00:00:00Z'";
    eventually(PATIENCE, async || owner.query_one(left, &[]).await.unwrap().get(0)).await;
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn action_that_waits_when_its_claim_expires_is_reported_as_not_run() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    // Two slots, one of which is for queries.
    let text = slow(&database, &owner, &provider, 25.0, 7).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query, on_interrupted) \
         SELECT 'report', 'tenant_' || n, 'jobs', now(), 'slow', 'fail' FROM generate_series(1, 2) AS n",
    )
    .await
    .unwrap();
    let process = Process::spawn(&text, &["run"]);
    // The one that waits begins later with each renewal of its claim.
    let waits = "SELECT count(*) = 2 AND max(started_at) - min(started_at) > interval '1 second' FROM outbox.action \
                 WHERE status = 'running'";
    eventually(PATIENCE * 2, async || owner.query_one(waits, &[]).await.unwrap().get(0)).await;
    // As another replica has it end whose claim has expired.
    let expired = "UPDATE outbox.action SET status = 'failed', finished_at = clock_timestamp(), attempts = attempts + 1, \
                   token = NULL, expires_at = NULL, error = '{\"code\": \"interrupted\"}' \
                   WHERE action_id = (SELECT action_id FROM outbox.action ORDER BY started_at DESC LIMIT 1)";
    assert_eq!(owner.execute(expired, &[]).await.unwrap(), 1);
    let said = line(&process, "nothing of the job was run here: its claim expired or was taken").await;
    assert!(said["hint"].as_str().unwrap().contains("on_interrupted of its schedule has decided"), "{said}");
    assert_eq!((having(&owner, "report", "failed").await, provider.count()), (1, 0));
}

/// The seconds for which `status` says that actions have been running.
async fn running(text: &str) -> Vec<f64> {
    let (_, out, log) = outbox_relay(text, &["status", "-o", "json"]).await;
    assert!(!out.is_empty(), "{log}");
    let actions = json(&out)["actions"].as_array().cloned().unwrap_or_default();
    actions.iter().map(|action| action["running_seconds"].as_f64().unwrap()).collect()
}

// Guarantee: schedules.waiting
#[tokio::test(flavor = "multi_thread")]
async fn running_seconds_of_an_action_count_from_its_begin() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    // Two slots, one of which is for queries.
    let text = slow(&database, &owner, &provider, 25.0, 7).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, query) \
         SELECT 'report', 'tenant_' || n, 'jobs', now(), 'slow' FROM generate_series(1, 2) AS n",
    )
    .await
    .unwrap();
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || running(&text).await.len() == 2).await;
    // The one that waits says so with each renewal of its claim: it is younger then than it was before, and than the one that runs.
    let mut before = 0.0;
    eventually(PATIENCE * 2, async || {
        let seconds = running(&text).await;
        let [runs, waits] = seconds[..] else { panic!("both are still running: {seconds:?}") };
        let is_younger = waits + 0.5 < f64::min(before, runs);
        before = waits;
        is_younger
    })
    .await;
}

// Guarantee: schedules.own-statements
#[tokio::test(flavor = "multi_thread")]
async fn relay_plans_and_claims_while_a_statement_has_the_only_slot() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let table = "CREATE TABLE public.done (tenant text); GRANT INSERT ON public.done TO relay";
    owner.batch_execute(table).await.unwrap();
    let relay = "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.turn]\ndeadline = \"50s\"\n[relay.sink.sql]\n\
                 statement = \"INSERT INTO public.done SELECT $1::text FROM pg_sleep(28)\"\nparameters = [\"tenant\"]\n";
    let process = Process::spawn(&with_pool(&toml(&database, "relay", None, relay), 5), &["run"]);
    line(&process, "relay ready").await;
    let sleeps =
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    let add = async |tenant: &str| {
        let sql = "INSERT INTO outbox.schedule (name, tenant, relay, starts_at) VALUES ('report', $1, 'jobs', now())";
        app.execute(sql, &[&tenant]).await.unwrap();
    };
    add("a").await;
    eventually(PATIENCE, async || owner.query_one(sleeps, &[]).await.unwrap().get(0)).await;
    add("b").await;
    // Long before the statement ends, the next occurrence is made, and its action is claimed.
    eventually(PATIENCE, async || having(&owner, "report", "running").await == 2).await;
    assert!(owner.query_one(sleeps, &[]).await.unwrap().get::<_, bool>(0), "one statement at a time has the slot");
}
