//! What is measured of schedules, and how long their actions are kept.

use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, relay};
use crate::support::outside::{get, json, listener};
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

/// The value of a sample whose name and labels these are; none when it is not exported.
fn sample(text: &str, name: &str) -> Option<f64> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.map(|value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_schedules_say_what_was_late_missed_skipped_completed_failed_and_cannot_run() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|request| match request.path.as_str() {
        "/refused" => Answer::Refuse(400),
        "/slow" => Answer::Late(Duration::from_millis(2_500)),
        _ => Answer::Accept,
    });
    let provider = provider.await.unwrap();
    let text =
        toml(&database, "relay", None, &relay(&provider, "", "")).replace("timeout = \"1s\"", "timeout = \"10s\"");
    let text = text.replace("deadline = \"2s\"", "deadline = \"20s\"");
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, rule, starts_at) VALUES \
         ('missed', 'jobs', 'FREQ=SECONDLY;COUNT=3', date_trunc('second', clock_timestamp()) + interval '1 second')",
    )
    .await
    .unwrap();
    let past = "SELECT starts_at + interval '3500 milliseconds' < clock_timestamp() FROM outbox.schedule";
    eventually(PATIENCE, async || owner.query_one(past, &[]).await.unwrap().get(0)).await;
    let replica = Process::spawn(&text, &["run"]);
    let url = format!("{}/metrics", listener(&replica).await);
    // From now on somebody watches.
    eventually(PATIENCE, async || having(&owner, "missed", "completed").await == 1).await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, rule) VALUES ('never', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'); \
         INSERT INTO outbox.schedule (name, relay, rule, starts_at) VALUES \
         ('slow', 'jobs', 'FREQ=SECONDLY;COUNT=3', date_trunc('second', clock_timestamp()) + interval '1 second'); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('refused', 'jobs', now())",
    )
    .await
    .unwrap();
    let ended = "SELECT count(*) FROM outbox.action WHERE status NOT IN ('completed', 'failed', 'skipped')";
    eventually(PATIENCE * 2, async || {
        having(&owner, "slow", "completed").await >= 1
            && having(&owner, "slow", "completed").await + having(&owner, "slow", "skipped").await == 3
            && having(&owner, "refused", "failed").await == 1
            && owner.query_one(ended, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    let count = async |status: &str| {
        let sql = "SELECT count(*) FROM outbox.action WHERE status = $1";
        f64::from(u32::try_from(owner.query_one(sql, &[&status]).await.unwrap().get::<_, i64>(0)).unwrap())
    };
    let (completed, skipped) = (count("completed").await, count("skipped").await);
    assert!(skipped >= 1.0, "an occurrence came while the slow one ran");
    let labelled = |name: &str, result: &str| format!("outbox_relay_{name}{{cursor=\"jobs\"{result}}}");
    let expected = [
        (labelled("schedule_actions_total", ",result=\"completed\""), completed),
        (labelled("schedule_actions_total", ",result=\"skipped\""), skipped),
        (labelled("schedule_actions_total", ",result=\"failed\""), 1.0),
        (labelled("schedule_problems", ""), 1.0),
        (labelled("schedule_due_actions", ""), 0.0),
        (labelled("schedule_running_actions", ""), 0.0),
        (labelled("schedule_waiting_seconds", ""), 0.0),
        // Each that was begun, once.
        (labelled("schedule_lateness_seconds_count", ""), completed + 1.0),
    ];
    eventually(PATIENCE * 2, async || {
        let text = get(&url).await.1;
        let missed = sample(&text, &labelled("schedule_missed_total", ""));
        expected.iter().all(|(name, value)| sample(&text, name) == Some(*value)) && missed >= Some(3.0)
    })
    .await;
    let text = get(&url).await.1;
    // The missed one was more than half a second late, and the histogram has its buckets.
    assert!(sample(&text, &labelled("schedule_lateness_seconds_sum", "")).unwrap() > 0.5, "{text}");
    assert!(text.contains("outbox_relay_schedule_lateness_seconds_bucket{cursor=\"jobs\",le=\"1\"}"), "{text}");
}

// Guarantee: retention.actions
#[tokio::test(flavor = "multi_thread")]
async fn actions_that_ended_go_after_their_time_and_those_that_have_not_ended_stay_and_are_told() {
    let database = database().await;
    let (owner, _app) = clients(&database).await;
    owner
        .batch_execute(
            "INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, finished_at, status, payload, \
             on_interrupted, timeout) \
             SELECT 1, name, '', 'jobs', at, at, at, CASE WHEN status IN ('completed', 'failed', 'skipped') THEN at END, status, '{}', 'retry', '1 minute' \
             FROM (VALUES ('done', 'completed', 40), ('refused', 'failed', 41), ('overlapped', 'skipped', 42), ('due', 'due', 43), \
             ('queued', 'queued', 44), ('young', 'completed', 29)) AS a (name, status, days), \
             LATERAL (SELECT now() - days * interval '1 day' AS at) AS t",
        )
        .await
        .unwrap();
    let names = async || {
        let sql = "SELECT string_agg(schedule, ' ' ORDER BY schedule) FROM outbox.action";
        owner.query_one(sql, &[]).await.unwrap().get::<_, String>(0)
    };
    let text = toml(&database, "relay", None, "[retention]\nactions = \"30d\"\n");
    let told = |out: &str| json(out)["prune"][0].clone();
    let (code, out, log) = outbox_relay(&text, &["prune", "--dry-run", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let kept = serde_json::json!([{ "rows": 2, "held_by": "not ended" }]);
    let expected = serde_json::json!({ "key": ["actions", "outbox.action"], "prunable": 3, "pruned": 0, "kept": kept });
    assert_eq!(told(&out), expected);
    assert_eq!(names().await, "done due overlapped queued refused young", "a dry run changes nothing");
    let (code, out, log) = outbox_relay(&text, &["prune", "--yes", "-o", "json"]).await;
    assert_eq!((code, &told(&out)["pruned"]), (Some(0), &3.into()), "{log}");
    assert_eq!(names().await, "due queued young");
    let none = toml(&database, "relay", None, "[retention]\nevery = \"1m\"\n");
    assert_eq!(
        json(&outbox_relay(&none, &["prune", "--yes", "-o", "json"]).await.1),
        serde_json::json!({ "prune": [] })
    );
}
