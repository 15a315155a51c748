//! `intake`: how many calls the HTTP intake takes a second, beside as many connections that call `outbox.enqueue_once`
//! themselves, and what one call takes; `ledger`: what a row in the ledger costs beside one in `outbox.message`.
//!
//! Everything is committed row by row, each by itself, in the same database and the same run.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio_postgres::Client;

use super::figure::{each, median, percentile, rounded, runs};
use super::process::Process;
use super::report::Report;
use super::stage::Stage;

/// Connections of the intake and of those who call by themselves, and clients of the intake.
const CONNECTIONS: u64 = 4;
const CLIENTS: u64 = 8;
const TOKEN: &str = "bench-0123456789abcdef";
const PATIENCE: Duration = Duration::from_secs(30);

const CLEAN: &str = "
    TRUNCATE outbox.request, outbox.message;
    INSERT INTO outbox.template (name, relay) VALUES ('welcome', 'bench') ON CONFLICT DO NOTHING";
const ONCE: &str = "SELECT outbox.enqueue_once($1, 'ada', 'welcome', '{\"name\": \"Ada\"}')::text";
const EACH: &str = "SELECT outbox.enqueue($1, 'welcome', '{\"name\": \"Ada\"}')::text";
const PLAIN: &str = "INSERT INTO outbox.message (topic, key, payload) VALUES ('welcome', $1, '{\"name\": \"Ada\"}')";

/// One round.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How many calls of each kind.
    pub calls: u64,
    /// Calls a second over HTTP.
    pub intake: f64,
    /// The median of a call over HTTP, in milliseconds.
    pub p50_ms: f64,
    /// What one in a hundred exceeds.
    pub p99_ms: f64,
    /// `enqueue_once` a second, by as many connections as the intake has.
    pub direct: f64,
    /// `enqueue_once` a second, by one connection.
    pub once: f64,
    /// `enqueue` a second, by one connection.
    pub each: f64,
    /// Plain rows a second, by one connection.
    pub plain: f64,
}

/// Measures all kinds, one after the other.
pub async fn measure(stage: &Stage, calls: u64) -> anyhow::Result<Asked> {
    let plain = sql(stage, PLAIN, 1, calls).await.context("plain rows")?;
    let each = sql(stage, EACH, 1, calls).await.context("enqueue")?;
    let once = sql(stage, ONCE, 1, calls).await.context("enqueue_once")?;
    let direct = sql(stage, ONCE, CONNECTIONS, calls).await.context("enqueue_once by several")?;
    let (intake, mut times) = http(stage, calls).await.context("intake")?;
    let (p50_ms, p99_ms) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    Ok(Asked { calls, intake, p50_ms, p99_ms, direct, once, each, plain })
}

async fn clean(stage: &Stage) -> anyhow::Result<Client> {
    let owner = stage.owner().await?;
    owner.batch_execute(CLEAN).await?;
    owner.batch_execute("CHECKPOINT").await?;
    Ok(owner)
}

/// Runs a statement of one text so often by so many connections; a second.
async fn sql(stage: &Stage, statement: &'static str, connections: u64, calls: u64) -> anyhow::Result<f64> {
    let owner = clean(stage).await?;
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = stage.owner().await?;
        clients.push((client.prepare(statement).await?, client));
    }
    let begun = Instant::now();
    let loops = clients.into_iter().zip(0..).map(|((statement, client), number)| async move {
        for call in (number..calls).step_by(usize::try_from(connections)?) {
            client.execute(&statement, &[&format!("k{call}")]).await?;
        }
        anyhow::Ok(())
    });
    futures_util::future::try_join_all(loops).await?;
    let took = begun.elapsed();
    made(&owner, calls).await?;
    Ok(calls as f64 / took.as_secs_f64())
}

/// Asks over HTTP so often by several clients: calls a second, and the milliseconds of each.
async fn http(stage: &Stage, calls: u64) -> anyhow::Result<(f64, Vec<f64>)> {
    let owner = clean(stage).await?;
    let files = tempfile::tempdir()?;
    let tokens = files.path().join("tokens");
    std::fs::write(&tokens, TOKEN)?;
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let toml = format!(
        "[postgres]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[intake]\nlisten = \"{address}\"\n\
         token_file = \"{}\"\nconnections = {CONNECTIONS}\n",
        stage.url(),
        tokens.display()
    );
    let mut process = Process::spawn(&toml, "intake")?;
    let url = format!("http://{address}/v1/requests");
    let client = reqwest::Client::builder().no_proxy().build()?;
    process.until(PATIENCE, "the intake answers", async || Ok(client.get(&url).send().await.is_ok())).await?;
    let ask = |number: u64| {
        let body = format!(
            r#"{{"dedupe_key":"k{number}","user_id":"ada","template":"welcome","parameters":{{"name":"Ada"}}}}"#
        );
        let request = client.post(&url).bearer_auth(TOKEN).header("content-type", "application/json").body(body);
        async move {
            let begun = Instant::now();
            let response = request.send().await?;
            ensure!(response.status().as_u16() == 202, "answered {}", response.status());
            response.bytes().await?;
            anyhow::Ok(begun.elapsed().as_secs_f64() * 1e3)
        }
    };
    // Connections of both sides are open, and their functions planned, before it counts.
    futures_util::future::try_join_all((0..CLIENTS).map(|number| ask(calls + number))).await?;
    owner.batch_execute("TRUNCATE outbox.request").await?;
    let begun = Instant::now();
    let loops = (0..CLIENTS).map(|number| async move {
        let mut times = Vec::new();
        for call in (number..calls).step_by(usize::try_from(CLIENTS)?) {
            times.push(ask(call).await?);
        }
        anyhow::Ok(times)
    });
    let times = futures_util::future::try_join_all(loops).await?.concat();
    let took = begun.elapsed();
    made(&owner, calls).await?;
    process.stop().await?;
    Ok((calls as f64 / took.as_secs_f64(), times))
}

async fn made(owner: &Client, calls: u64) -> anyhow::Result<()> {
    let sql = "SELECT (SELECT count(*) FROM outbox.request) + (SELECT count(*) FROM outbox.message)";
    let made: i64 = owner.query_one(sql, &[]).await?.get(0);
    ensure!(u64::try_from(made)? == calls, "{made} of {calls} rows were written");
    Ok(())
}

/// For people and programs.
pub fn tell(asked: &[Asked], report: &mut Report) {
    let of = |value: fn(&Asked) -> f64| each(asked, value);
    let (plain, direct) = (of(|asked| asked.plain), of(|asked| asked.direct));
    let kinds = [
        ("ledger_raw", "plain row in outbox.message", plain.clone(), None),
        ("ledger_enqueue", "ledger, enqueue", of(|asked| asked.each), Some(&plain)),
        ("ledger", "ledger, enqueue_once", of(|asked| asked.once), Some(&plain)),
        ("intake_raw", "enqueue_once, 4 connections", direct.clone(), None),
        ("intake", "intake, 8 clients", of(|asked| asked.intake), Some(&direct)),
    ];
    let (p50, p99) = (of(|asked| asked.p50_ms), of(|asked| asked.p99_ms));
    for (name, what, rates, raw) in kinds {
        let ratio = raw.map(|raw| median(&rates) / median(raw));
        report.line(what, &rates, "calls/s", ratio.map_or(String::new(), |ratio| format!("ratio {ratio:.2}")));
        let mut result = json!({"name": name, "rows": asked.first().map(|asked| asked.calls),
            "rows_per_second": rounded(median(&rates)), "runs": runs(&rates)});
        if let Some(ratio) = ratio {
            result["ratio"] = rounded(ratio);
        }
        if name == "intake" {
            result["p50_ms"] = rounded(median(&p50));
            result["p99_ms"] = rounded(median(&p99));
        }
        report.results.push(result);
    }
    report.line("intake p50", &p50, "ms", "");
    report.line("intake p99", &p99, "ms", "");
}
