//! What `status` and `cursor why` say while every call of queued work fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outbox_testkit::provider::{Answer, Provider};
use serde_json::Value;

use super::{clients, relay};
use crate::support::outside::json;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay as program, toml};

/// The cursor `jobs` as `status` shows it.
async fn shown(text: &str) -> Value {
    let (_, out, log) = program(text, &["status", "-o", "json"]).await;
    assert!(!out.is_empty(), "{log}");
    json(&out)["cursors"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_whose_calls_all_time_out_are_not_called_running_and_the_failure_is_named() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let hangs = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&hangs);
    let answer = move |_: &_| if flag.load(Ordering::SeqCst) { Answer::Lose } else { Answer::Accept };
    let provider = Provider::start(answer).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "in_flight = 1", ""));
    let _process = Process::spawn(&text, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) \
         SELECT 'report-' || n, 'jobs', now(), 'retry' FROM generate_series(1, 40) AS n",
    )
    .await
    .unwrap();
    eventually(PATIENCE * 3, async || shown(&text).await["state"] == "backing_off").await;
    let cursor = shown(&text).await;
    assert_eq!(cursor["last_error"]["code"], "timeout", "{cursor}");
    assert!(cursor["last_error"]["since"].is_string(), "{cursor}");
    // Nothing has ever completed: claims are no advance.
    let at = |key: &Value| outbox_relay::position::Timestamp::parse_rfc3339(key.as_str().unwrap()).unwrap();
    assert!(at(&cursor["advanced_at"]) <= at(&cursor["last_error"]["since"]), "{cursor}");
    let (code, out, _) = program(&text, &["cursor", "why", "jobs"]).await;
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("no attempt of jobs has succeeded since ") && out.contains("retry timeout: "), "{out}");
    assert!(out.contains("rows wait, the oldest for "), "{out}");
    let (_, out, _) = program(&text, &["status"]).await;
    assert!(out.contains("error: retry timeout: "), "{out}");
    hangs.store(false, Ordering::SeqCst);
    let completed = "SELECT count(*) FROM outbox.action WHERE status = 'completed'";
    eventually(PATIENCE * 2, async || owner.query_one(completed, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
    eventually(PATIENCE, async || shown(&text).await["last_error"].is_null()).await;
}

/// Failed actions are in no list of `status`, and the next occurrence may fail as well.
#[tokio::test(flavor = "multi_thread")]
async fn failure_of_schedules_is_shown_for_a_while_after_the_last_action_and_no_longer() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(400)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let _process = Process::spawn(&text, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) \
         SELECT 'report-' || n, 'jobs', now(), 'fail' FROM generate_series(1, 5) AS n",
    )
    .await
    .unwrap();
    let failed = "SELECT count(*) FROM outbox.action WHERE status = 'failed'";
    eventually(PATIENCE * 3, async || owner.query_one(failed, &[]).await.unwrap().get::<_, i64>(0) == 5).await;
    eventually(PATIENCE, async || shown(&text).await["last_error"]["code"] == "http_400").await;
    let older = "UPDATE outbox.cursor_status SET updated_at = updated_at - interval '4 minutes'";
    owner.batch_execute(older).await.unwrap();
    let measured = "SELECT EXISTS (SELECT FROM outbox.cursor_status WHERE last_error IS NOT NULL)";
    assert!(owner.query_one(measured, &[]).await.unwrap().get::<_, bool>(0));
    owner.batch_execute(older).await.unwrap();
    eventually(PATIENCE * 2, async || shown(&text).await["last_error"].is_null()).await;
    let (code, out, _) = program(&text, &["cursor", "why", "jobs"]).await;
    assert_eq!(code, Some(0), "{out}");
}
