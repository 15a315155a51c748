//! `lag_stage_seconds` blames the stage in which a row really spends its time.

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{get, listener};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

/// The stages of cursor `sms`, in seconds: commit wait, horizon hold, queue, publish; and its lag.
struct Shown {
    stages: [f64; 4],
    lag: f64,
}

impl Shown {
    async fn by(listener: &str) -> Self {
        let page = get(&format!("{listener}/metrics")).await.1;
        let value = |series: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("outbox_relay_{series}}} ")));
            line.map_or(0.0, |value| value.parse().unwrap())
        };
        let stage = |stage| value(&format!("lag_stage_seconds{{cursor=\"sms\",stage=\"{stage}\""));
        Self {
            stages: ["commit_wait", "horizon_hold", "queue", "publish"].map(stage),
            lag: value("cursor_lag_seconds{cursor=\"sms\""),
        }
    }

    fn total(&self) -> f64 {
        self.stages.iter().sum()
    }

    /// Whether most of at least a second was spent in this stage.
    fn blames(&self, stage: usize) -> bool {
        self.total() >= 1.0 && self.stages[stage] > self.total() / 2.0
    }

    /// Whether the stages are those of the row that makes the lag.
    fn is_lag(&self) -> bool {
        (self.total() - self.lag).abs() < 0.001
    }
}

// Guarantee: observe.lag-stages
#[tokio::test(flavor = "multi_thread")]
async fn slow_commits_held_rows_a_hanging_sink_and_a_pause_are_told_apart() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    let text = toml(&database, "relay", None, &sms_relay("sms", &gateway, ""));
    let process = Process::spawn(&text, &["run"]);
    let url = listener(&process).await;
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { gateway.accepted().len() == 1 }).await;

    // The writer takes six seconds between its insert and its commit, and nobody else writes.
    let app = database.connect("app").await;
    app.batch_execute("BEGIN; INSERT INTO bookings DEFAULT VALUES; SELECT pg_sleep(6); COMMIT").await.unwrap();
    eventually(PATIENCE, || async { Shown::by(&url).await.blames(0) }).await;
    eventually(PATIENCE, || async { gateway.accepted().len() == 2 }).await;

    // It stays open, and another's row waits for it.
    app.batch_execute("BEGIN; INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let held = || async {
        let shown = Shown::by(&url).await;
        shown.blames(1) && shown.is_lag()
    };
    eventually(PATIENCE * 2, held).await;
    app.batch_execute("ROLLBACK").await.unwrap();
    eventually(PATIENCE, || async { gateway.accepted().len() == 3 }).await;

    gateway.set(Mood::Hang);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let at_sink = || async {
        let shown = Shown::by(&url).await;
        shown.blames(3) && shown.is_lag() && shown.lag > 7.0
    };
    eventually(PATIENCE * 2, at_sink).await; // longer than a turn's deadline: tries that fail count as one
    gateway.set(Mood::Accept);
    eventually(PATIENCE * 2, || async { gateway.accepted().len() == 4 }).await;

    assert_eq!(outbox_relay(&text, &["cursor", "pause", "sms"]).await.0, Some(0));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let queued = || async {
        let shown = Shown::by(&url).await;
        shown.blames(2) && shown.is_lag()
    };
    eventually(PATIENCE * 2, queued).await;
}
