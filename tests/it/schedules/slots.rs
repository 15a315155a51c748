//! An action that waits for one of the pool's slots has not begun.

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{clients, having, relay};
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
    let left = "SELECT count(*) FILTER (WHERE status = 'due' AND attempts = 0) = 1 \
                AND count(*) FILTER (WHERE status = 'running') = 1 FROM outbox.action";
    eventually(PATIENCE, async || owner.query_one(left, &[]).await.unwrap().get(0)).await;
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!((having(&owner, "report", "completed").await, provider.count()), (1, 1));
}
