//! What operators ask and order: status, cursor, config, and how a process ends.

use std::collections::BTreeSet;

use outbox_testkit::postgres::password;
use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::Client;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{halted, json, keys, line, listener, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

mod signals;

async fn status(text: &str) -> Value {
    let (code, out, log) = outbox_relay(text, &["status", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    json(&out)
}

fn cursor<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["cursors"].as_array().unwrap().iter().find(|cursor| cursor["name"] == name).expect("the cursor")
}

#[track_caller]
fn reaches<'a>(text: &'a str, name: &'a str, state: &'a str) -> impl Future<Output = ()> + 'a {
    eventually(PATIENCE * 2, move || async move { cursor(&status(text).await, name)["state"] == state })
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_as_documented_and_names_who_holds_a_cursor_back() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    reaches(&text, "s", "idle").await;
    let document = status(&text).await;
    assert_eq!(
        keys(&document),
        BTreeSet::from(["version", "schema_version", "observed_at", "cursors", "actions", "replicas"])
    );
    let idle = cursor(&document, "s");
    let expected = [
        "name",
        "relay",
        "state",
        "position",
        "lag_seconds",
        "backlog_rows",
        "backlog_capped",
        "holder",
        "advanced_at",
        "horizon",
        "sink",
        "last_error",
        "paused",
        "late_rows",
        "dead_letters",
        "parked_keys",
        "unknown_outcomes",
        "unknown_keys",
    ];
    assert_eq!(keys(idle), BTreeSet::from(expected));
    assert_eq!(
        (&idle["position"]["id"], &idle["backlog_rows"], &idle["lag_seconds"]),
        (&"1".into(), &0.into(), &0.0.into())
    );
    assert_eq!((&idle["holder"]["replica"], &idle["last_error"]), (&"r1".into(), &Value::Null));
    assert_eq!(idle["sink"], serde_json::json!({ "kind": "stdout", "circuit": "closed", "opened_at": null }));
    assert_eq!(keys(&idle["horizon"]), BTreeSet::from(["at", "rule", "proven", "held_seconds", "held_by"]));
    assert_eq!((&idle["horizon"]["rule"], &idle["horizon"]["proven"]), (&"writers".into(), &false.into()));

    let mut writer = database.connect("app").await;
    writer.batch_execute("SET application_name = 'slow-writer'").await.unwrap();
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    reaches(&text, "s", "held").await;
    // Since when another role's transaction is open only pg_read_all_stats may see; a status has no scans of before.
    let with_stats = toml(&database, "relay_stats", None, &stdout_relay("s", ""));
    for (text, reason) in [(&text, "unknown_start"), (&with_stats, "writer")] {
        let document = status(text).await;
        let held = cursor(&document, "s");
        assert_eq!((&held["state"], &held["backlog_rows"]), (&"held".into(), &1.into()));
        assert!(held["lag_seconds"].as_f64().unwrap() > 0.0);
        let by = &held["horizon"]["held_by"][0];
        assert_eq!(keys(by), BTreeSet::from(["pid", "application", "age_seconds", "reason"]));
        assert_eq!(
            (&by["pid"], &by["application"], &by["reason"]),
            (&pid.into(), &"slow-writer".into(), &reason.into())
        );
        for seconds in [&held["horizon"]["held_seconds"], &by["age_seconds"]] {
            assert_eq!(seconds.as_f64().is_some_and(|seconds| seconds > 0.0), reason == "writer", "{held}");
        }
    }
    let (code, out, _) = outbox_relay(&text, &["status", "--max-lag", "1ms"]).await;
    assert_eq!(code, Some(3), "{out}");
    assert!(out.starts_with("CURSOR") && out.contains("held"), "{out}");
    open.commit().await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2", "3"] }).await;
    reaches(&text, "s", "idle").await;
    let (_, list, log) = outbox_relay(&text, &["cursor", "list", "-o", "json"]).await;
    assert_eq!(cursor(&json(&list), "s")["state"], "idle", "the word of `status`: {list}{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_cursor_says_so_in_status_with_its_error() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    gateway.set(Mood::Refuse(400, r#"{"code":21211}"#));
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let process = Process::spawn(&text, &["run"]);
    halted(&owner, "sms").await;
    let document = status(&text).await;
    let halted = cursor(&document, "sms");
    assert_eq!((&halted["state"], &halted["backlog_rows"]), (&"halted".into(), &1.into()));
    assert_eq!(keys(&halted["last_error"]), BTreeSet::from(["at", "class", "code", "message", "hint", "since"]));
    assert_eq!(halted["last_error"]["code"], "twilio_21211");
    drop(process);
    let once = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert_eq!(once.0, Some(1), "a halted relay is no success: {}", once.2);
}

async fn operations(owner: &Client) -> Vec<(String, Option<String>)> {
    let rows = owner.query("SELECT verb, cursor, operator FROM outbox.operation ORDER BY id", &[]).await.unwrap();
    rows.iter()
        .map(|row| {
            assert!(row.get::<_, String>(2).starts_with("relay/"), "the role, and the system's user");
            (row.get(0), row.get(1))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_stops_a_running_relay_resume_continues_it_and_both_are_on_record() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relays = format!("{}{}", stdout_relay("s", ""), stdout_relay("other", ""));
    let text = toml(&database, "relay", None, &relays);
    let process = Process::spawn(&text, &["run"]);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;

    let (code, out, _) = outbox_relay(&text, &["cursor", "pause", "s"]).await;
    let said = "s: paused: no turn begins until `outbox-relay cursor resume`\n";
    assert_eq!((code, out.as_str()), (Some(0), said));
    assert_eq!(outbox_relay(&text, &["cursor", "pause", "s"]).await.1, "s: paused already\n");
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "other") == ["1", "2"] }).await;
    assert_eq!(printed(&process, "s"), ["1"]);
    assert_eq!(cursor(&status(&text).await, "s")["state"], "paused");
    let (code, out, _) = outbox_relay(&text, &["cursor", "list", "-o", "json"]).await;
    let list = json(&out);
    assert_eq!(
        (code, &list["cursors"][1]["key"], &list["cursors"][1]["paused"]),
        (Some(0), &serde_json::json!(["s"]), &true.into())
    );
    let (_, out, _) = outbox_relay(&text, &["cursor", "list"]).await;
    assert!(out.starts_with("CURSOR") && out.lines().any(|l| l.starts_with("s ") && l.ends_with("paused")), "{out}");

    assert_eq!(outbox_relay(&text, &["cursor", "resume", "s"]).await.1, "s: resumed\n");
    eventually(PATIENCE, || async { printed(&process, "s") == ["1", "2"] }).await;
    assert_eq!(outbox_relay(&text, &["cursor", "resume", "s"]).await.1, "s: neither paused nor halted\n");
    let verbs = ["cursor pause", "cursor pause", "cursor resume", "cursor resume"];
    assert_eq!(operations(&owner).await, verbs.map(|verb| (verb.to_owned(), Some("s".to_owned()))));

    let (code, _, log) = outbox_relay(&text, &["cursor", "pause", "nobody"]).await;
    let said = "error: there is no cursor nobody; `outbox-relay cursor list` shows them\n";
    assert_eq!((code, log.as_str()), (Some(1), said));
}

#[tokio::test(flavor = "multi_thread")]
async fn config_show_prints_everything_but_secrets() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
    assert_eq!(code, Some(0), "{log}");
    for shown in ["relay:***@127.0.0.1", "auth_token = \"***\"", "account_sid = \"AC1\"", "deadline = \"5s\""] {
        assert!(out.contains(shown), "{shown} in {out}");
    }
    assert!(!out.contains(&password("relay")) && !out.contains("hunter2"), "{out}");
    assert_eq!(outbox_relay(&text, &["config", "show"]).await.0, Some(2), "secrets are never shown");
}

#[tokio::test]
async fn convert_prints_a_configuration_and_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let settings = "debezium.source.database.hostname=db\ndebezium.source.database.user=u\ndebezium.source.database.password=hunter2\n\
                    debezium.source.database.dbname=d\ndebezium.source.table.include.list=public.events\ndebezium.transforms=o\n\
                    debezium.transforms.o.type=io.debezium.transforms.outbox.EventRouter\ndebezium.source.column.exclude.list=x\n";
    std::fs::write(path("ok"), settings).unwrap();
    let (code, out, log) = outbox_relay("", &["convert", "debezium", &path("ok")]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.contains("table = \"public.events\"") && !out.contains("hunter2"), "{out}");
    assert!(
        log.contains("note: Not translated: column.exclude.list.") && log.contains("next: review the file"),
        "{log}"
    );
    std::fs::write(path("other"), settings.replace("outbox.EventRouter", "ByLogicalTableRouter")).unwrap();
    std::fs::write(path("large"), settings.repeat(4_000)).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(pipe.success());
    std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
    for (name, said) in [
        ("other", "no transform has the type"),
        ("absent", "cannot be read"),
        ("large", "it is larger than 1 MiB"),
        ("pipe", "it is a pipe or a device, not a file"),
        ("zero", "it is a pipe or a device, not a file"),
    ] {
        let (code, out, log) = outbox_relay("", &["convert", "debezium", &path(name)]).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{log}");
        assert!(log.contains(said), "{said}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_relays_what_is_there_and_ends_with_0() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 100)").await.unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let (code, out, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 100), "{log}");
    let (code, out, _) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, out.as_str()), (Some(0), ""), "nothing is relayed twice");
    let seek = ["cursor", "seek", "s", "--beginning", "--yes", "--no-wait"];
    assert_eq!(outbox_relay(&text, &seek).await.0, Some(0));
    let (code, out, _) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 100), "what an operator wants is done before");
}

async fn running(database: &Database, relays: &str) -> Process {
    let process = Process::spawn(&toml(database, "relay", None, relays), &["run"]);
    listener(&process).await;
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_drains_and_exits_0_and_a_second_one_exits_at_once_with_128_and_its_number() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    for signal in [Signal::TERM, Signal::INT] {
        let mut process = running(&database, &stdout_relay("s", "")).await;
        process.signal(signal);
        assert_eq!(process.wait().await, Some(0), "{}", process.log());
        assert!(process.log().contains("outbox-relay has drained"));
    }
    // A request without an answer keeps the turn open, so that the first signal does not end the process at once.
    gateway.set(Mood::Hang);
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    for (second, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let before = gateway.asked().len();
        let mut process = running(&database, &sms_relay("sms", &gateway, "")).await;
        eventually(PATIENCE, || async { gateway.asked().len() > before }).await;
        process.signal(Signal::TERM);
        line(&process, "draining: running turns end, no new one begins").await;
        process.signal(second);
        assert_eq!(process.wait().await, Some(code));
    }
}
