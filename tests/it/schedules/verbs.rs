//! What operators see of schedules and actions, and do with them.

use outbox_testkit::provider::{Answer, Provider};
use serde_json::Value;
use tokio_postgres::Client;

use super::{clients, having, relay};
use crate::support::outside::json;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

/// The document of a verb that ends with 0.
async fn document(toml: &str, arguments: &[&str]) -> Value {
    let (code, out, log) = outbox_relay(toml, &[arguments, &["-o", "json"]].concat()).await;
    assert_eq!(code, Some(0), "{arguments:?}: {log}");
    json(&out)
}

/// What a verb that ends with 0 prints, and what it says beside it.
async fn done(toml: &str, arguments: &[&str]) -> (String, String) {
    let (code, out, log) = outbox_relay(toml, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {out}{log}");
    (out, log)
}

/// The schedules of `schedule list` with these arguments, by name.
async fn listed(toml: &str, arguments: &[&str]) -> Vec<Value> {
    let document = document(toml, &[&["schedule", "list"], arguments].concat()).await;
    document["schedules"].as_array().unwrap().clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// What stands in `outbox.operation`: verb, relay, and the schedule's name.
async fn noted(owner: &Client) -> Vec<(String, String, String)> {
    let sql = "SELECT verb, cursor, detail ->> 'schedule' FROM outbox.operation ORDER BY id";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

// Guarantee: commands.schedule-list
#[tokio::test(flavor = "multi_thread")]
async fn list_and_show_tell_in_english_in_local_time_and_in_utc_what_comes_and_why_something_does_not() {
    let database = database().await;
    let (_owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text_of = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, rule, time_zone) VALUES \
         ('report', '', 'jobs', 'FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9', 'Europe/Berlin'), \
         ('report', 'tenant_a', 'jobs', 'FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9', 'Europe/Berlin'), \
         ('bad', '', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', 'UTC'); \
         INSERT INTO outbox.schedule (name, relay, starts_at, ends_at) VALUES ('over', 'jobs', now(), now() - interval '1 day')",
    )
    .await
    .unwrap();
    assert!(listed(&text_of, &[]).await.iter().all(|schedule| schedule["state"] == "computing"));
    done(&text_of, &["run", "--once"]).await;
    let all = listed(&text_of, &["--relay", "jobs"]).await;
    let states: Vec<_> =
        all.iter().map(|one| (text(&one["name"]), text(&one["tenant"]), text(&one["state"]))).collect();
    let expected =
        [("bad", "", "problem"), ("over", "", "ended"), ("report", "", "planned"), ("report", "tenant_a", "planned")];
    assert_eq!(states, expected);
    assert_eq!((&all[2]["english"], &all[2]["last"]), (&"every first Monday at 09:00".into(), &Value::Null));
    assert!(text(&all[2]["next_local"]).contains("T09:00:00+0"), "{}", all[2]);
    assert!(text(&all[2]["next_at"]).ends_with(":00:00.000000Z"), "{}", all[2]);
    let problems = listed(&text_of, &["--problems"]).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(text(&problems[0]["problem"]).starts_with("never: "), "{problems:?}");
    let of_a = listed(&text_of, &["--tenant", "tenant_a"]).await;
    assert_eq!((of_a.len(), &of_a[0]["key"]), (1, &all[3]["key"]));
    assert_eq!(outbox_relay(&text_of, &["schedule", "list", "--relay", "other"]).await.0, Some(2));
    let (table, _) = done(&text_of, &["schedule", "list"]).await;
    assert!(table.contains(" 09:00:00 CE") && table.contains("every first Monday at 09:00"), "{table}");

    let (code, _, log) = outbox_relay(&text_of, &["schedule", "show", "report"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("report names several schedules") && log.contains("tenant_a/report (id "), "{log}");
    let shown = document(&text_of, &["schedule", "show", "tenant_a/report"]).await;
    let next: Vec<_> = shown["next"].as_array().unwrap().iter().map(|next| text(&next["local"]).to_owned()).collect();
    assert!(next.len() == 5 && next.iter().all(|at| at.contains("T09:00:00+0")), "{next:?}");
    assert_eq!(next.iter().collect::<std::collections::BTreeSet<_>>().len(), 5, "{next:?}");
    assert_eq!(
        (&shown["missed"], &shown["overlap"], &shown["actions"]),
        (&"latest".into(), &"skip".into(), &Value::Array(vec![]))
    );
    let by_id = document(&text_of, &["schedule", "show", text(&all[3]["key"][0])]).await;
    assert_eq!(by_id, shown, "an id names it, too");
    let (told, _) = done(&text_of, &["schedule", "show", "bad"]).await;
    assert!(told.contains("problem: never: ") && told.contains("none: problem"), "{told}");
    let (code, _, log) = outbox_relay(&text_of, &["schedule", "show", "nobody"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("there is no schedule nobody; `outbox-relay schedule list` shows them"), "{log}");
    let (code, _, log) = outbox_relay(&text_of, &["action", "list", "--schedule", "reprt"]).await;
    let known = "unknown schedule \"reprt\"; known: bad, over, report, tenant_a/report";
    assert!(code == Some(2) && log.contains(known), "{log}");
    done(&text_of, &["action", "list", "--schedule", "report"]).await; // it is there, and has made no action yet
}

// Guarantee: commands.run-now
#[tokio::test(flavor = "multi_thread")]
async fn pause_resume_and_run_now_do_what_they_say_and_note_who_did() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text_of = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute("INSERT INTO outbox.schedule (name, tenant, relay, rule) VALUES ('report', 'tenant_a', 'jobs', 'FREQ=YEARLY;BYMONTH=1;BYHOUR=1')")
        .await
        .unwrap();
    let (out, _) = done(&text_of, &["schedule", "pause", "report"]).await;
    assert!(out.starts_with("tenant_a/report: paused: "), "{out}");
    assert_eq!(done(&text_of, &["schedule", "pause", "report"]).await.0, "tenant_a/report: paused already\n");
    assert_eq!(listed(&text_of, &[]).await[0]["state"], "paused");
    // A pause ends what the rule makes, not what somebody asks for.
    let (out, log) = done(&text_of, &["schedule", "run-now", "report"]).await;
    assert!(out.starts_with("tenant_a/report: action ") && out.ends_with(" of tenant_a: due\n"), "{out}");
    assert!(log.contains("no replica is running"), "{log}");
    let (out, _) = done(&text_of, &["schedule", "run-now", "tenant_a/report"]).await;
    assert!(out.ends_with("queued behind an earlier one that has not ended\n"), "{out}");
    done(&text_of, &["run", "--once"]).await;
    assert_eq!((having(&owner, "report", "completed").await, provider.count()), (2, 2));
    let (out, _) = done(&text_of, &["schedule", "resume", "report"]).await;
    assert!(out.starts_with("tenant_a/report: resumed: "), "{out}");
    assert_eq!(done(&text_of, &["schedule", "resume", "report"]).await.0, "tenant_a/report: not paused\n");
    let verbs = ["schedule pause", "schedule run-now", "schedule run-now", "schedule resume"];
    let expected = verbs.map(|verb| (verb.to_owned(), "jobs".to_owned(), "report".to_owned()));
    assert_eq!(noted(&owner).await, expected);

    let actions =
        document(&text_of, &["action", "list", "--schedule", "tenant_a/report", "--status", "completed"]).await;
    let actions = actions["actions"].as_array().unwrap();
    let ids: Vec<i64> = actions.iter().map(|action| text(&action["key"][0]).parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] > ids[1], "the newest first: {ids:?}");
    for action in actions {
        assert_eq!((&action["manual"], &action["attempts"], &action["error"]), (&true.into(), &0.into(), &Value::Null));
        assert!(action["took_seconds"].as_f64().unwrap() >= 0.0, "{action}");
    }
    let detail = "SELECT detail -> 'actions' ->> 0 FROM outbox.operation WHERE verb = 'schedule run-now' ORDER BY id DESC LIMIT 1";
    assert_eq!(owner.query_one(detail, &[]).await.unwrap().get::<_, String>(0), ids[0].to_string());
    assert_eq!(outbox_relay(&text_of, &["action", "list", "--relay", "other"]).await.0, Some(2));
    assert_eq!(listed(&text_of, &[]).await[0]["last"]["actions"], serde_json::json!({ "completed": 1 }));
    app.batch_execute("DELETE FROM outbox.schedule").await.unwrap();
    assert_eq!(
        document(&text_of, &["action", "list", "--schedule", "report"]).await["actions"].as_array().unwrap().len(),
        2
    );
}

// Guarantee: commands.schedule-pause
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_schedule_makes_no_occurrence_and_what_fell_into_the_pause_is_not_made_up_for() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text_of = toml(&database, "relay", None, &relay(&provider, "", ""));
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, rule, missed) VALUES ('held', 'jobs', 'FREQ=SECONDLY', 'all'), \
         ('free', 'jobs', 'FREQ=SECONDLY', 'all')",
    )
    .await
    .unwrap();
    done(&text_of, &["schedule", "pause", "held"]).await;
    let paused: String = owner.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap().get(0);
    let _replica = Process::spawn(&text_of, &["run"]);
    eventually(PATIENCE, async || having(&owner, "free", "completed").await >= 3).await;
    done(&text_of, &["schedule", "resume", "held"]).await;
    let resumed: String =
        owner.query_one("SELECT changed_at::text FROM outbox.schedule WHERE name = 'held'", &[]).await.unwrap().get(0);
    eventually(PATIENCE, async || having(&owner, "held", "completed").await >= 1).await;
    let between = format!(
        "SELECT count(*) FROM outbox.action WHERE schedule = 'held' AND planned_at BETWEEN '{paused}' AND '{resumed}'"
    );
    assert_eq!(owner.query_one(&between, &[]).await.unwrap().get::<_, i64>(0), 0);
}

// Guarantee: commands.run-now
#[tokio::test(flavor = "multi_thread")]
async fn run_now_of_a_schedule_for_each_tenant_makes_one_action_for_each_schema() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text_of = toml(&database, "relay", None, &relay(&provider, "schema = \"tenant_*\"", ""));
    app.batch_execute("INSERT INTO outbox.schedule (name, tenant, relay, starts_at) VALUES ('all', '*', 'jobs', now() + interval '1 year')")
        .await
        .unwrap();
    let (code, _, log) = outbox_relay(&text_of, &["schedule", "run-now", "all"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("*/all is for each tenant, and no schema is called tenant_*"), "{log}");
    owner.batch_execute("CREATE SCHEMA tenant_b; CREATE SCHEMA tenant_a; CREATE SCHEMA tenantless").await.unwrap();
    let (out, _) = done(&text_of, &["schedule", "run-now", "all"]).await;
    let lines: Vec<_> = out.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].ends_with("of tenant_a: due") && lines[1].ends_with("of tenant_b: due"),
        "{out}"
    );
    let without = toml(&database, "relay", None, &relay(&provider, "", ""));
    let (code, _, log) = outbox_relay(&without, &["schedule", "run-now", "all"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("run this with the configuration that the replicas have"), "{log}");
    assert_eq!(noted(&owner).await.len(), 1);
    assert_eq!(listed(&text_of, &[]).await[0]["last"]["actions"]["due"], 2, "both are of one instant");
}

// Guarantee: commands.status-actions
#[tokio::test(flavor = "multi_thread")]
async fn status_and_why_show_what_runs_for_how_long_and_what_it_said_last() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let text_of = toml(
        &database,
        "relay",
        None,
        "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.command.programs.slow]\nprogram = \"/bin/sh\"\n\
         args = [\"-c\", \"echo row 1 of 9 >&2; echo row 3 of 9 >&2; exec sleep 50\"]\n",
    );
    let _replica = Process::spawn(&text_of, &["run"]);
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, tenant, relay, starts_at, command) VALUES ('slow', E'a\\033[31m', 'jobs', now(), 'slow'); \
         INSERT INTO outbox.schedule (name, relay, rule) VALUES ('bad', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')",
    )
    .await
    .unwrap();
    let ready = "SELECT (SELECT count(*) FROM outbox.schedule WHERE problem IS NOT NULL) = 1 \
                 AND EXISTS (SELECT FROM outbox.action WHERE status = 'running' AND progress = 'row 3 of 9')";
    eventually(PATIENCE, async || owner.query_one(ready, &[]).await.unwrap().get(0)).await;
    let (table, _) = done(&text_of, &["status"]).await;
    let line = table
        .lines()
        .map(str::trim_start)
        .find(|line| line.starts_with("running: "))
        .unwrap_or_else(|| panic!("{table}"));
    assert!(line.starts_with("running: slow (tenant a\\u{1b}[31m) for "), "{line}");
    assert!(line.ends_with(" s of 60 s: row 3 of 9"), "{line}");
    let status = document(&text_of, &["status"]).await;
    let action = &status["actions"][0];
    assert_eq!(
        (&action["relay"], &action["schedule"], &action["timeout_seconds"]),
        (&"jobs".into(), &"slow".into(), &60.0.into())
    );
    assert_eq!((text(&action["tenant"]), text(&action["progress"])), ("a\u{1b}[31m", "row 3 of 9"));
    assert!(action["running_seconds"].as_f64().unwrap() >= 0.0 && action["by"].is_string(), "{action}");
    let (why, _) = done(&text_of, &["cursor", "why", "jobs"]).await;
    assert!(why.contains("actions running 1, due 0; schedules with a problem 1"), "{why}");
    assert_eq!(document(&text_of, &["cursor", "why", "jobs"]).await["schedules"]["running"], 1);
    let running = document(&text_of, &["action", "list", "--status", "running"]).await;
    assert_eq!(
        (&running["actions"][0]["finished_at"], text(&running["actions"][0]["progress"])),
        (&Value::Null, "row 3 of 9")
    );
}

// Guarantee: commands.schedule-list
#[tokio::test(flavor = "multi_thread")]
async fn schedule_whose_instant_has_passed_is_due_since_then() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let http = "[relay.sink.http]\nurl = \"http://127.0.0.1:9/jobs\"\nbody = \"row\"\n";
    let relays = format!("[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n{http}");
    let text_of = toml(&database, "relay", None, &relays);
    let schedule = "INSERT INTO outbox.schedule (name, relay, rule) VALUES ('report', 'jobs', 'FREQ=DAILY'); \
                    UPDATE outbox.schedule SET next_at = '2026-01-02T03:04:05Z'";
    owner.batch_execute(schedule).await.unwrap();
    let (code, why, log) = outbox_relay(&text_of, &["cursor", "why", "jobs"]).await;
    assert!(code == Some(3) && why.contains("one has been due since 2026-01-02T03:04:05.000000Z"), "{why}{log}");
    let (shown, _) = done(&text_of, &["schedule", "show", "report"]).await;
    assert!(shown.contains("  2026-01-02T03:04:05Z  has been due since then\n"), "{shown}");
    // Its columns are the relay's own: none is added later.
    let (_, found, log) = outbox_relay(&text_of, &["check", "-o", "json"]).await;
    let found: Value = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}{log}"));
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|finding| text(&finding["code"])).collect();
    assert!(codes.len() > 3 && !codes.contains(&"whole_row"), "{found}");
    done(&text_of, &["cursor", "create", "jobs", "--beginning"]).await;
    let (code, shown, log) = outbox_relay(&text_of, &["status", "jobs", "--max-lag", "1h"]).await;
    assert!(code == Some(3) && log.contains("jobs lags "), "no replica makes an action of it: {shown}{log}");
}
