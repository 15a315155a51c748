//! The demo, as a user runs it: its verdict, and that nothing of it stays behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use outbox_testkit::kafka::RealBroker;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

#[path = "demo/lanes.rs"]
mod lanes;
#[path = "demo/verify.rs"]
mod verify;

/// Slow on a busy machine: three replicas, PostgreSQL and the writers share it with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

async fn eventually(within: Duration, condition: impl AsyncFn() -> bool) {
    let reached = tokio::time::timeout(within, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(reached.await.is_ok(), "not within {within:?}");
}

/// A demo whose temporary directories all lie in one of ours.
fn demo(seconds: &str, more: &[&str]) -> (Child, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    // As root the demo runs PostgreSQL as another user, who must come through here.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_outbox-demo"))
        .args(["--json", "--seconds", seconds])
        .args(more)
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    (child, dir)
}

fn left_in(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&*dir.to_string_lossy()) {
            left.push(line);
        }
    }
    left
}

/// Whether all below `dir` is the owner's alone: its directories, and files with a password or a token.
fn is_private(dir: &Path) -> Option<bool> {
    let mode = |path: &Path| Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777);
    let dirs: Vec<_> = std::fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().path()).collect();
    let replicas = dirs.iter().find(|dir| dir.join("auth-token").exists() && dir.join("outbox-relay.toml").exists())?;
    let files = ["auth-token", "outbox-relay.toml"].map(|file| mode(&replicas.join(file)));
    Some(dirs.len() == 2 && dirs.iter().all(|dir| mode(dir) == Some(0o700)) && files == [Some(0o600); 2])
}

// Guarantee: observe.demo-private
#[tokio::test]
async fn demo_files_are_private_to_its_user() {
    let (child, dir) = demo("1", &[]);
    eventually(PATIENCE, || async { is_private(dir.path()).is_some() }).await;
    assert_eq!(is_private(dir.path()), Some(true));
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    assert!(output.status.code().is_some());
}

// Guarantee: delivery.demo
#[tokio::test]
async fn the_demo_survives_a_kill_with_nothing_lost_and_leaves_nothing_behind() {
    let (child, dir) = demo("6", &[]);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(verdict["verdict"], "pass", "{stdout}");
    assert_eq!((verdict["seconds"].as_u64(), verdict["replicas"].as_u64(), verdict["seed"].as_u64()), {
        (Some(6), Some(3), Some(1))
    });
    let rows = verdict["rows_committed"].as_u64().unwrap();
    assert!(rows > 0);
    for sink in ["kafka", "sms"] {
        let sink = &verdict["sinks"][sink];
        for none in ["lost", "out_of_order", "phantom"] {
            assert_eq!(sink[none], 0, "{stdout}");
        }
        assert_eq!(sink["distinct"], rows);
        assert_eq!(sink["deliveries"].as_u64().unwrap(), rows + sink["duplicates"].as_u64().unwrap());
    }
    // The product says the same of its topic: all rows looked at, and what a kill may have repeated counted.
    let (verify, repeated) = (&verdict["verify"], &verdict["sinks"]["kafka"]["duplicates"]);
    assert_eq!((&verify["relay"], verify["rows"].as_u64()), (&"booking_events".into(), Some(rows)), "{stdout}");
    assert_eq!(verify["records"], verdict["sinks"]["kafka"]["deliveries"], "{stdout}");
    assert_eq!(verify["exit_code"], if *repeated == 0 { 0 } else { 3 }, "{stdout}");
    assert!(stdout.contains("\nverify  booking_events: "), "{stdout}");
    let kill = &verdict["kills"][0];
    assert_eq!((kill["signal"].as_str(), kill["cursor"].as_str()), (Some("SIGKILL"), Some("booking_events")));
    println!("takeover after {} ms", kill["takeover_ms"]);
    assert!(kill["takeover_ms"].as_f64().unwrap() < 10_000.0);
    assert!(verdict["rows_per_second"].as_f64().unwrap() > 0.0);
    assert!(verdict["latency_ms"]["p50"].as_f64().unwrap() <= verdict["latency_ms"]["max"].as_f64().unwrap());
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: pending.demo
#[tokio::test]
async fn the_demo_of_reminders_survives_faults_and_kills_and_leaves_nothing_behind() {
    let (child, dir) = demo("8", &["--scenario", "reminders", "--seed", "7"]);
    let output = tokio::time::timeout(2 * PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    println!("{stdout}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["scenario"].as_str()), (Some("pass"), Some("reminders")));
    let asked = ["seed", "seconds", "replicas"].map(|key| verdict[key].as_u64());
    assert_eq!(asked, [Some(7), Some(8), Some(3)]);
    let (a, b) = (&verdict["systems"]["reminders"], &verdict["systems"]["welcome"]);
    assert!(a["due"].as_u64().unwrap() > 100 && b["due"].as_u64().unwrap() > 100, "{stdout}");
    assert_eq!(a["delivered"], a["due"]);
    for none in ["unexplained", "early", "phantom", "unmarked"] {
        assert_eq!(a[none], 0, "{none}: {stdout}");
    }
    for none in ["twice", "unexplained", "early", "phantom"] {
        assert_eq!(b[none], 0, "{none}: {stdout}");
    }
    let missing = b["due"].as_u64().unwrap() - b["delivered"].as_u64().unwrap();
    assert!(missing > 0 && missing <= b["unknown"].as_u64().unwrap(), "{stdout}");
    assert!(a["repeated"].as_u64().unwrap() > 0, "what hung came again: {stdout}");
    let kills = verdict["kills"].as_array().unwrap();
    assert!(kills.len() == 2 && kills.iter().all(|kill| kill["signal"] == "SIGKILL"), "{stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: requests.demo
#[tokio::test]
async fn the_demo_of_requests_survives_faults_and_kills_and_leaves_nothing_behind() {
    let (child, dir) = demo("8", &["--scenario", "requests", "--seed", "7"]);
    let output = tokio::time::timeout(2 * PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    println!("{stdout}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["scenario"].as_str()), (Some("pass"), Some("requests")));
    let options = ["seed", "seconds", "replicas"].map(|key| verdict[key].as_u64());
    assert_eq!(options, [Some(7), Some(8), Some(3)]);
    let asked = &verdict["asked"];
    assert_eq!((asked["keys"].as_u64(), asked["requests"].as_u64()), (Some(160), Some(160)), "{stdout}");
    assert!(asked["calls"].as_u64().unwrap() > 8 * 160, "every caller asked for everything: {stdout}");
    for none in ["split", "premature", "wrong"] {
        assert_eq!(asked[none], 0, "{none}: {stdout}");
    }
    let (mails, texts) = (&verdict["relays"]["mails"], &verdict["relays"]["texts"]);
    for relay in [mails, texts] {
        assert_eq!(relay["requests"], 80);
        for none in ["unexplained", "two_bodies", "unlisted", "hidden", "phantom", "open"] {
            assert_eq!(relay[none], 0, "{none}: {stdout}");
        }
        assert!(relay["in_doubt"].as_u64().unwrap() > 0, "nothing is proven: {stdout}");
    }
    assert_eq!((&mails["accepted"], &mails["completed"]), (&80.into(), &80.into()));
    assert!(mails["repeated"].as_u64().unwrap() > 0, "what hung came again: {stdout}");
    assert_eq!(texts["repeated"], 0);
    let missing = texts["missing"].as_u64().unwrap();
    assert!(missing > 0 && missing <= texts["unknown"].as_u64().unwrap(), "{stdout}");
    let kills = verdict["kills"].as_array().unwrap();
    assert!(kills.len() == 2 && kills.iter().all(|kill| kill["signal"] == "SIGKILL"), "{stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: schedules.demo
#[tokio::test]
async fn the_demo_of_schedules_survives_kills_and_seconds_without_a_replica_and_leaves_nothing_behind() {
    let (child, dir) = demo("12", &["--scenario", "schedules", "--seed", "7"]);
    let output = tokio::time::timeout(3 * PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    println!("{stdout}");

    let verdict: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["scenario"].as_str()), (Some("pass"), Some("schedules")));
    let options = ["seed", "seconds", "replicas"].map(|key| verdict[key].as_u64());
    assert_eq!(options, [Some(7), Some(12), Some(3)]);
    let all = &verdict["occurrences"];
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    assert!(count(all, "expected") > 150, "{stdout}");
    assert_eq!(
        ["completed", "failed", "skipped"].map(|key| count(all, key)).iter().sum::<u64>(),
        count(all, "expected")
    );
    for none in ["lost", "twice", "phantom", "early", "unexplained", "wrong"] {
        assert_eq!(all[none], 0, "{none}: {stdout}");
    }
    let red = &verdict["tenants"]["red"];
    // The call that hangs fails in its time, but where a killed replica had it: then it is taken up again, and may meet the end.
    let ended = count(red, "failed") > 0 || verdict["takeover_ms"].as_u64() > Some(0);
    assert!(ended && count(red, "skipped") > 0, "its endpoint hung: {stdout}");
    assert_eq!(verdict["missed"], serde_json::json!({"all": 3, "latest": 1, "none": 0}));
    assert!(verdict["problem"].as_str().unwrap().starts_with("never: "), "{stdout}");
    let latency = &verdict["latency_ms"];
    assert_eq!(latency["late"], 0);
    assert!(count(latency, "judged") > 0 && latency["p50"].as_f64() <= latency["max"].as_f64(), "{stdout}");
    let kills = verdict["kills"].as_array().unwrap();
    assert!(kills.len() > 3 && kills.iter().all(|kill| kill["signal"] == "SIGKILL"), "{stdout}");
    assert!(kills.iter().any(|kill| kill["held"]["jobs"].as_u64() > Some(0)), "nothing is proven: {stdout}");
    assert_eq!(left_in(dir.path()), [""; 0]);
}

// Guarantee: schedules.demo
#[tokio::test]
async fn an_interrupted_demo_of_schedules_is_undecided_and_leaves_nothing_behind() {
    interrupted(&["--scenario", "schedules"]).await;
}

// Guarantee: pending.demo
#[tokio::test]
async fn an_interrupted_demo_of_reminders_is_undecided_and_leaves_nothing_behind() {
    interrupted(&["--scenario", "reminders"]).await;
}

// Guarantee: requests.demo
#[tokio::test]
async fn an_interrupted_demo_of_requests_is_undecided_and_leaves_nothing_behind() {
    interrupted(&["--scenario", "requests"]).await;
}

#[tokio::test]
async fn only_the_demo_of_bookings_has_use_for_a_broker() {
    for scenario in ["reminders", "requests", "schedules", "lanes"] {
        let (child, _dir) = demo("1", &["--scenario", scenario, "--kafka", "127.0.0.1:9092"]);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

// Guarantee: delivery.demo
#[tokio::test]
async fn an_interrupted_demo_is_undecided_and_leaves_nothing_behind() {
    interrupted(&[]).await;
}

/// Interrupts it while the replicas run: the middle of the play, or the wait for them.
async fn interrupted(more: &[&str]) {
    let (mut child, dir) = demo("60", more);
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    eventually(PATIENCE, async || left_in(dir.path()).iter().any(|left| left.contains("run --replica-id"))).await;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.expect("its end").unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(left_in(dir.path()), [""; 0]);
}

#[tokio::test]
async fn a_demo_killed_without_warning_leaves_nothing_behind() {
    // With a real broker of its own, so that every kind of server is there.
    let (mut child, dir) = demo("60", &["--kafka", "real"]);
    eventually(PATIENCE, async || left_in(dir.path()).iter().any(|left| left.contains("run --replica-id"))).await;
    assert!(left_in(dir.path()).iter().any(|left| left.starts_with("outbox-relay-kafka")), "{:?}", left_in(dir.path()));
    child.kill().await.unwrap();
    eventually(PATIENCE, async || left_in(dir.path()).is_empty()).await;
}

#[tokio::test]
async fn on_a_broker_that_is_there_the_demo_uses_a_topic_of_its_own_and_deletes_it() {
    let broker = RealBroker::start().await.unwrap();
    let servers = broker.bootstrap_servers();
    let (child, dir) = demo("2", &["--kafka", &servers]);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("its end").unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert_eq!(left_in(dir.path()), [""; 0]);
    eventually(PATIENCE, async || !topics(&servers).await.iter().any(|name| name.starts_with("outbox-relay-demo")))
        .await;
}

async fn topics(servers: &str) -> Vec<String> {
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", servers).create().unwrap();
    let listed = tokio::task::spawn_blocking(move || {
        let metadata = consumer.fetch_metadata(None, Duration::from_secs(10)).unwrap();
        metadata.topics().iter().map(|topic| topic.name().to_owned()).collect()
    });
    listed.await.unwrap()
}
