//! `lanes`: how many messages a second a receiver takes that needs its time for each, by how many may be on their way: those of a
//! stream here, those of pending rows and requests in `lanes_jobs.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use serde_json::json;

use super::figure::{mib, rounded};
use super::lanes_jobs;
use super::options::Options;
use super::process::{ANY, Process, head};
use super::report::{Goal, Report};
use super::stage::Stage;

const TABLE: &str = "public.bookings_lanes";
/// Whose messages are sent.
pub const LANES: i64 = 2_000;
/// What is measured: how long the receiver takes for a message, and how many may be on their way.
const CASES: [(u64, usize); 13] = [
    (1, 1),
    (1, 10),
    (1, 50),
    (1, 200),
    (10, 1),
    (10, 10),
    (10, 50),
    (10, 200),
    (100, 1),
    (100, 10),
    (100, 50),
    (100, 200),
    (100, 1_000),
];
/// Of `in_flight` over the receiver's time, up to so many a second.
const RATIO: f64 = 0.95;
const PER_SECOND: f64 = 2_000.0;
/// Of a core, in percent.
pub const CORE: f64 = 100.0;
const MEMORY_MIB: f64 = 100.0;
/// Until the first message arrives.
const PATIENCE: Duration = Duration::from_secs(30);
/// The relay is ready, and a turn is under way.
const WARM: Duration = Duration::from_secs(2);

/// Measures and tells.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    stage.table(TABLE).await?;
    let owner = stage.owner().await?;
    report.section("lanes: messages a second at a receiver that takes its time, one relay, 2,000 lanes");
    for (millis, in_flight) in CASES {
        options.say(&format!("lanes: {millis} ms, in_flight = {in_flight}"));
        let ideal = in_flight as f64 * 1e3 / millis as f64;
        let seconds = options.seconds.max(3);
        let rows = (ideal.min(20_000.0) * (seconds + 4) as f64) as i64 + 1_000;
        let insert = format!(
            "TRUNCATE {TABLE}; DELETE FROM outbox.cursor WHERE name = 'lanes'; \
             INSERT INTO {TABLE} (customer, payload) SELECT 'c' || n % {LANES}, rpad(n::text, 200, 'x') FROM generate_series(1, {rows}) AS n; \
             ANALYZE {TABLE}"
        );
        owner.batch_execute(&insert).await?;
        let receiver = Receiver::start(Duration::from_millis(millis)).await?;
        let watched = watch(&toml(stage, &receiver.url, in_flight), &receiver, seconds).await?;
        let mut note = watched.note(ideal, millis);
        if millis == 100 {
            let goals = watched.goals(ideal, CORE).into_iter();
            let memory = Goal::Most(MEMORY_MIB).told(mib(watched.rss_max_bytes));
            note = format!("{note}; {}", goals.chain([memory]).collect::<Vec<_>>().join(", "));
        }
        report.line(&format!("{millis} ms, in_flight = {in_flight}"), &[watched.per_second], "messages/s", note);
        report.results.push(
            json!({"name": "lanes", "provider_ms": millis, "in_flight": in_flight, "cursors": 1, "replicas": 1,
            "rows_per_second": rounded(watched.per_second), "ratio": rounded(watched.per_second / ideal),
            "cpu_percent": rounded(watched.percent), "rss_max_bytes": watched.rss_max_bytes}),
        );
    }
    owner.batch_execute(&format!("DROP TABLE {TABLE}")).await?;
    lanes_jobs::measure(stage, options, report).await
}

/// What was seen of a relay and its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Messages that were answered.
    pub per_second: f64,
    /// The relay's share of a core.
    pub percent: f64,
    /// The most memory that it had.
    pub rss_max_bytes: u64,
}

impl Watched {
    /// Beside what the receiver could take.
    pub fn note(&self, ideal: f64, millis: u64) -> String {
        let Self { per_second, percent, rss_max_bytes } = *self;
        let (ratio, mib) = (per_second / ideal, mib(rss_max_bytes));
        format!("{ratio:.2} of in_flight / {millis} ms, {percent:.0}% of a core, {mib:.0} MiB")
    }

    /// Whether the goals are met; none beyond the rate for which they are set.
    pub fn goals(&self, ideal: f64, core: f64) -> Vec<String> {
        let told = [Goal::Least(RATIO).told(self.per_second / ideal), Goal::Most(core).told(self.percent)];
        told.into_iter().filter(|_| ideal <= PER_SECOND).collect()
    }
}

/// Runs the relay of this configuration, and watches it for so long once it is under way.
pub async fn watch(toml: &str, receiver: &Receiver, seconds: u64) -> anyhow::Result<Watched> {
    let mut process = Process::spawn(toml, "r1")?;
    process.until(PATIENCE, "a message arrives", async || Ok(receiver.answered() > 0)).await?;
    tokio::time::sleep(WARM).await;
    let (from, cpu_s, watched) = (receiver.answered(), process.usage()?.cpu_s, Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (answered, took) = (receiver.answered() - from, watched.elapsed().as_secs_f64());
    let usage = process.usage()?;
    process.stop().await?;
    let percent = (usage.cpu_s - cpu_s) / took * 100.0;
    Ok(Watched { per_second: answered as f64 / took, percent, rss_max_bytes: usage.rss_max_bytes })
}

fn toml(stage: &Stage, url: &str, in_flight: usize) -> String {
    let turn = if in_flight > 1 { format!("in_flight = {in_flight}\nlane = \"customer\"\n") } else { String::new() };
    format!(
        "{}[[relay]]\nname = \"lanes\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"{TABLE}\"\n[relay.turn]\n{turn}\
         [relay.sink.http]\nurl = \"{url}\"\nbody = \"{{{{ payload }}}}\"\n",
        head(&stage.near(), ANY)
    )
}

/// Accepts every request after its time.
#[derive(Debug)]
pub struct Receiver {
    /// Its address.
    pub url: String,
    answered: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    /// Listens on a free port, and takes so long for each.
    pub async fn start(pause: Duration) -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let answered = Arc::new(AtomicU64::new(0));
        let answer = async |State((pause, answered)): State<(Duration, Arc<AtomicU64>)>, _: axum::body::Bytes| {
            tokio::time::sleep(pause).await;
            answered.fetch_add(1, Ordering::Relaxed);
        };
        let router = Router::new().fallback(answer).with_state((pause, Arc::clone(&answered)));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the receiver has ended: {error}");
            }
        });
        Ok(Self { url, answered, task })
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}
