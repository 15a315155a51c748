//! Tenants: one with very much to do, or whose receiver hangs, does not hold up another.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, relay};
use crate::support::{PATIENCE, Process, database, eventually, toml};

/// A million due actions of `a`, older than everything else.
const MILLION: &str = "INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, status, payload, on_interrupted, timeout) \
    SELECT -i, 'flood', 'a', 'jobs', t.at, t.at, t.at, 'due', '{}', 'retry', '1 minute' \
    FROM generate_series(1, 1000000) AS i, LATERAL (SELECT now() - interval '1 day' + i * interval '1 millisecond' AS at) AS t; \
    ANALYZE outbox.action";

/// The latest start of `b`'s actions, in seconds after their instants.
async fn latest(owner: &tokio_postgres::Client) -> f64 {
    let sql = "SELECT max(extract(epoch FROM started_at - planned_at))::float8 FROM outbox.action WHERE tenant = 'b'";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

// Guarantee: schedules.fair-tenants
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_a_million_due_actions_holds_no_other_up_and_has_its_own_share() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner.batch_execute(MILLION).await.unwrap();
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(20))).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let _replicas = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    eventually(PATIENCE * 2, async || having(&owner, "flood", "completed").await > 3).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule, overlap) VALUES ('ticks', 'b', 'jobs', 'FREQ=SECONDLY;COUNT=6', 'queue'), \
         ('nobodys', '', 'jobs', 'FREQ=SECONDLY;COUNT=6', 'queue')",
    )
    .await
    .unwrap();
    eventually(PATIENCE * 2, async || {
        having(&owner, "ticks", "completed").await >= 5 && having(&owner, "nobodys", "completed").await >= 5
    })
    .await;
    let together = "WITH a AS MATERIALIZED (SELECT action_id, started_at, finished_at FROM outbox.action \
                    WHERE tenant = 'a' AND status = 'completed') SELECT count(*) FROM a AS x, a AS y \
                    WHERE x.action_id < y.action_id AND x.finished_at > y.started_at AND y.finished_at > x.started_at";
    assert_eq!(owner.query_one(together, &[]).await.unwrap().get::<_, i64>(0), 0, "per_tenant_concurrency is 1");
    let late = latest(&owner).await;
    println!(
        "beside a tenant with a million due actions, another's were begun at most {late:.3} s after their instants"
    );
    assert!(late < PATIENCE.as_secs_f64());
}

// Guarantee: schedules.fair-tenants
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_receiver_hangs_holds_no_other_up() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider =
        Provider::start(|request| if request.path == "/hangs" { Answer::Lose } else { Answer::Accept }).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let _replicas = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule, overlap) VALUES ('hangs', 'a', 'jobs', 'FREQ=SECONDLY;COUNT=30', 'queue')",
    )
    .await
    .unwrap();
    eventually(PATIENCE * 2, async || provider.count() >= 2).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule, overlap) VALUES ('ticks', 'b', 'jobs', 'FREQ=SECONDLY;COUNT=6', 'queue')",
    )
    .await
    .unwrap();
    eventually(PATIENCE * 2, async || having(&owner, "ticks", "completed").await >= 5).await;
    let late = latest(&owner).await;
    println!("beside a tenant whose receiver hangs, another's were begun at most {late:.3} s after their instants");
    assert!(late < PATIENCE.as_secs_f64());
    assert_eq!(having(&owner, "hangs", "completed").await + having(&owner, "hangs", "failed").await, 0);
}

// Guarantee: schedules.tenant-credentials
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_credentials_are_wrong_holds_no_other_up() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider =
        Provider::start(|request| if request.path == "/wrong" { Answer::Refuse(401) } else { Answer::Accept })
            .await
            .unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at) SELECT 'wrong', 'wrong' || n, 'jobs', \
         now() + n * interval '400 milliseconds' FROM generate_series(1, 80) AS n; \
         INSERT INTO outbox.schedule (name, tenant, relay, rule) VALUES ('good', 'good', 'jobs', 'FREQ=SECONDLY')",
    )
    .await
    .unwrap();
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || having(&owner, "good", "completed").await >= 12).await;
    assert!(provider.received().iter().any(|received| received.request.path == "/wrong"));
}

// Guarantee: schedules.tenant-schemas
#[tokio::test(flavor = "multi_thread")]
async fn schedule_of_each_tenant_runs_once_its_relay_is_told_what_a_tenant_is() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    owner.batch_execute("CREATE SCHEMA tenant_a; CREATE SCHEMA tenant_b").await.unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let without = toml(&database, "relay", None, &relay(&provider, "", ""));
    let mut process = Process::spawn(&without, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule) VALUES ('all', '*', 'jobs', 'FREQ=SECONDLY')",
    )
    .await
    .unwrap();
    let problem =
        "SELECT count(*) FROM outbox.schedule WHERE problem LIKE 'tenants_unknown:%' AND next_at = 'infinity'";
    eventually(PATIENCE * 2, async || owner.query_one(problem, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    let with = toml(&database, "relay", None, &relay(&provider, "schema = \"tenant_*\"", ""));
    owner.batch_execute("CREATE TABLE public.told AS SELECT clock_timestamp() AS at").await.unwrap();
    let _process = Process::spawn(&with, &["run"]);
    eventually(PATIENCE * 2, async || having(&owner, "all", "completed").await >= 2).await;
    let before = "SELECT count(*) FROM outbox.action, public.told WHERE planned_at < told.at";
    assert_eq!(owner.query_one(before, &[]).await.unwrap().get::<_, i64>(0), 0, "as after an edit");
    assert_eq!(owner.query_one(problem, &[]).await.unwrap().get::<_, i64>(0), 0);
}
