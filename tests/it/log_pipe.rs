//! A log pipe that is not read stops nothing.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr};

use crate::support::outside::{get, stdout_relay};
use crate::support::{CLOCK, PATIENCE, bookings, database, eventually, toml};

/// A replica whose standard error is a pipe, and where it listens.
struct Piped {
    child: Child,
    pipe: BufReader<ChildStderr>,
    metrics: String,
    dir: tempfile::TempDir,
}

impl Piped {
    /// Reads the pipe up to the first line only.
    async fn start(toml: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("outbox-relay.toml");
        std::fs::write(&file, toml).unwrap();
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_outbox-relay"))
            .arg("--config")
            .arg(&file)
            .arg("run")
            .env("RUST_LOG", "trace")
            .env("OUTBOX_RELAY_ALLOW_LOSS", "1")
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(dir.path().join("out")).unwrap())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut pipe = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"admin\"") {
            line.clear();
            assert_ne!(pipe.read_line(&mut line).await.unwrap(), 0, "it has ended");
        }
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let metrics = format!("http://{}/metrics", line["admin"].as_str().unwrap());
        Self { child, pipe, metrics, dir }
    }

    /// Makes it log until lines are dropped; each answer shows that it lives.
    async fn fill(&self) {
        eventually(PATIENCE * 6, async || {
            let (status, text) = get(&self.metrics).await;
            assert_eq!(status, 200);
            let dropped = text.lines().find_map(|line| line.strip_prefix("outbox_relay_log_lines_dropped_total "));
            dropped.unwrap().parse::<f64>().unwrap() > 0.0
        })
        .await;
    }

    fn terminate(&self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    }
}

// Guarantee: observe.log-pipe
#[tokio::test(flavor = "multi_thread")]
async fn unread_log_pipe_stops_neither_rows_nor_exit() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut piped = Piped::start(&toml(&database, "relay", None, &stdout_relay("events", ""))).await;
    piped.fill().await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('after')").await.unwrap();
    let out = piped.dir.path().join("out");
    eventually(PATIENCE, async || std::fs::read_to_string(&out).unwrap().contains("after")).await;
    piped.terminate();
    let ended = tokio::time::timeout(PATIENCE, piped.child.wait()).await.expect("it ends in its usual time").unwrap();
    assert_eq!(ended.code(), Some(0));
}

// Guarantee: observe.log-pipe
#[tokio::test(flavor = "multi_thread")]
async fn dropped_log_lines_are_reported_once_read_again() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let mut piped = Piped::start(&toml(&database, "relay", None, &stdout_relay("events", ""))).await;
    piped.fill().await;
    let mut line = String::new();
    while !line.contains("log lines dropped: standard error was not read") {
        line.clear();
        assert_ne!(piped.pipe.read_line(&mut line).await.unwrap(), 0, "it has ended");
    }
    let warning: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(warning["lines"].as_u64().unwrap() > 0, "{line}");
    piped.terminate();
    let mut rest = String::new();
    piped.pipe.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("outbox-relay has drained"), "the last line was flushed");
    assert_eq!(piped.child.wait().await.unwrap().code(), Some(0));
}
