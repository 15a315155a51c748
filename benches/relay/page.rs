//! `page`: how long the status page takes with 1,000 cursors, how large it is, and what it costs while nothing asks for it.
//!
//! It cannot be switched off. So the replica is watched before the first request, and once more after the page has closed
//! its sessions.

use std::time::{Duration, Instant};

use outbox_testkit::startup::free_port;
use reqwest::Client as Http;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::figure::{median, percentile, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::{Process, Relay, head};
use super::report::{Goal, Report, thousands};
use super::spent::Spent;
use super::stage::Stage;

/// Goals.
const MILLIS: f64 = 50.0;
const FEW_KIB: f64 = 60.0;
const MANY_KIB: f64 = 1_024.0;
/// Nothing, but for what two watches of one idle process differ by.
const UNUSED_PERCENT: f64 = 0.3;

/// The fewest cursors, for which the page has to be small.
const FEW: usize = 20;
const TABLES: usize = 20;
const REQUESTS: usize = 200;
/// Requests share what the database was asked for a second, and what was rendered for half a second.
const OFTEN: Duration = Duration::from_millis(50);
/// Requests that share nothing.
const LOOKS: usize = 15;
const SELDOM: Duration = Duration::from_millis(1_300);
/// The page closes its sessions 20 s after the last request.
const CLOSED: Duration = Duration::from_secs(25);
/// Processor time is counted in hundredths of a second: fewer seconds say nothing of an idle process.
const LEAST_SECONDS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(240);

/// A replica, and the address of its page.
#[derive(Debug)]
struct Viewed {
    process: Process,
    http: Http,
    url: String,
    cursors: usize,
}

/// Requests, one after the other.
#[derive(Debug)]
struct Asked {
    millis: Vec<f64>,
    /// Of a core, for the replica while they were made.
    percent: f64,
    /// The size of the last page.
    kib: f64,
}

/// What runs while nothing asks.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    /// Of a core, for the replica.
    percent: f64,
    postgres_percent: f64,
    /// The replica's at the end.
    sessions: i64,
}

/// All figures.
#[derive(Debug)]
struct Figures {
    cursors: usize,
    few_kib: f64,
    often: Asked,
    seldom: Asked,
    before: Quiet,
    after: Quiet,
}

/// Asks for the page.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (owner, topic) = (stage.owner().await?, stage.topic().await?);
    for number in 0..TABLES {
        stage.table(&table(number)).await?;
        owner.batch_execute(&format!("INSERT INTO {} (customer, payload) VALUES ('c', 'x')", table(number))).await?;
    }
    options.say(&format!("page: {FEW} cursors"));
    let mut few = Viewed::start(stage, &topic, FEW).await?;
    few.shown().await?;
    let few_kib = few.asked(1, Duration::ZERO).await?.kib;
    few.process.stop().await?;
    options.say(&format!("page: {} cursors, which nothing has asked for", thousands(options.cursors as u64)));
    let mut viewed = Viewed::start(stage, &topic, options.cursors).await?;
    let seconds = options.seconds.max(LEAST_SECONDS);
    Spent::settle(&owner).await?;
    let before = viewed.quiet(&owner, seconds).await?;
    options.say("page: requests");
    viewed.shown().await?;
    let often = viewed.asked(REQUESTS, OFTEN).await?;
    let seldom = viewed.asked(LOOKS, SELDOM).await?;
    options.say("page: left alone again");
    tokio::time::sleep(CLOSED).await;
    let after = viewed.quiet(&owner, seconds).await?;
    viewed.process.stop().await?;
    stage.close(&topic, options.cursors as u64).await?;
    Figures { cursors: options.cursors, few_kib, often, seldom, before, after }.tell(report);
    Ok(())
}

fn table(number: usize) -> String {
    format!("public.page_{number}")
}

fn cursor(number: usize) -> String {
    format!("page-{number}")
}

async fn get(http: &Http, url: &str) -> anyhow::Result<String> {
    Ok(http.get(url).send().await?.error_for_status()?.text().await?)
}

impl Viewed {
    /// Starts the replica and waits until each cursor has relayed the row of its table; the page is not asked for.
    async fn start(stage: &Stage, topic: &str, cursors: usize) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut toml = head(&stage.near(), &address);
        for number in 0..cursors {
            let (name, source) = (cursor(number), table(number % TABLES));
            let relay = Relay {
                name: &name,
                table: &source,
                topic,
                payload: Payload::Text.toml(),
                window: "5ms",
                shards: 1,
                lines: "",
            };
            toml.push_str(&relay.section(""));
        }
        let mut process = Process::spawn(&toml, "page")?;
        let are_relayed = async || Ok(stage.records(topic)? >= cursors);
        process.until(PATIENCE, "each cursor has relayed the row of its table", are_relayed).await?;
        let http = Http::builder().no_proxy().build()?;
        Ok(Self { process, http, url: format!("http://{address}/"), cursors })
    }

    /// Waits until the page shows the last cursor.
    async fn shown(&mut self) -> anyhow::Result<()> {
        let (http, url) = (&self.http, self.url.as_str());
        let last = format!(">{}</th>", cursor(self.cursors - 1));
        let is_shown = async || Ok(get(http, url).await?.contains(&last));
        self.process.until(PATIENCE, "the page shows the last cursor", is_shown).await
    }

    /// Asks so often, each time after a pause.
    async fn asked(&self, requests: usize, pause: Duration) -> anyhow::Result<Asked> {
        let (mut millis, mut bytes) = (Vec::with_capacity(requests), 0);
        let (begun, before) = (Instant::now(), self.process.usage()?);
        for _ in 0..requests {
            tokio::time::sleep(pause).await;
            let asked = Instant::now();
            bytes = get(&self.http, &self.url).await?.len();
            millis.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        let cpu_s = self.process.usage()?.cpu_s - before.cpu_s;
        Ok(Asked { millis, percent: cpu_s * 100.0 / begun.elapsed().as_secs_f64(), kib: bytes as f64 / 1_024.0 })
    }

    async fn quiet(&self, owner: &Client, seconds: u64) -> anyhow::Result<Quiet> {
        let (cluster, before) = (Spent::look(owner).await?, self.process.usage()?);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (after, ended) = (self.process.usage()?, Spent::look(owner).await?);
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox-relay/%'";
        let sessions: i64 = owner.query_one(sql, &[]).await?.get(0);
        let percent = |cpu_s: f64| cpu_s * 100.0 / seconds as f64;
        let postgres_percent = percent(ended.since(&cluster).cpu_s);
        Ok(Quiet { percent: percent(after.cpu_s - before.cpu_s), postgres_percent, sessions })
    }
}

impl Figures {
    fn tell(&self, report: &mut Report) {
        let Self { cursors, few_kib, often, seldom, before, after } = self;
        report.section(format!("status page, {} cursors over {TABLES} tables, 1 replica", thousands(*cursors as u64)));
        let note = format!("{REQUESTS} requests, 20 a second; {}", Goal::Most(MILLIS).told(median(&often.millis)));
        report.line("a request", &often.millis, "ms", note);
        report.judged("a request, p99", &[self.p99_ms()], "ms", Goal::Most(MILLIS));
        let note = format!("{LOOKS} requests; {}", Goal::Most(MILLIS).told(median(&seldom.millis)));
        report.line("a request with a look of its own", &seldom.millis, "ms", note);
        report.judged("size", &[often.kib], "KiB", Goal::Most(MANY_KIB));
        report.judged(&format!("size with {FEW} cursors"), &[*few_kib], "KiB", Goal::Most(FEW_KIB));
        report.line("processor at 20 requests a second", &[often.percent], "% of a core", "");
        let idle = |quiet: &Quiet| format!("PostgreSQL: {:.2}; {} sessions", quiet.postgres_percent, quiet.sessions);
        report.line("idle, before the first request", &[before.percent], "% of a core", idle(before));
        report.line("idle, after the last one", &[after.percent], "% of a core", idle(after));
        let unused = Goal::Most(UNUSED_PERCENT);
        report.judged("what the page costs unused", &[after.percent - before.percent], "% of a core", unused);
        report.results.push(self.result());
    }

    fn p99_ms(&self) -> f64 {
        percentile(&mut self.often.millis.clone(), 0.99)
    }

    fn result(&self) -> Value {
        let Self { cursors, few_kib, often, seldom, before, after } = self;
        json!({"name": "page", "cursors": cursors, "replicas": 1, "tables": TABLES, "p50_ms": rounded(median(&often.millis)),
            "p99_ms": rounded(self.p99_ms()), "look_p50_ms": rounded(median(&seldom.millis)), "kib": rounded(often.kib),
            "few_cursors": FEW, "few_kib": rounded(*few_kib), "cpu_percent": rounded(often.percent),
            "idle_percent": [rounded(before.percent), rounded(after.percent)],
            "idle_postgres_percent": [rounded(before.postgres_percent), rounded(after.postgres_percent)],
            "idle_sessions": [before.sessions, after.sessions], "runs": runs(&seldom.millis)})
    }
}
