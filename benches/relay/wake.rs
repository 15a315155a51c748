//! `pending_wake`: how much later than it is due a single row arrives, when nothing else is to do.
//!
//! The receiver is an HTTP server in this process, which takes the time; it has the same clock as PostgreSQL.

use std::time::{Duration, Instant};

use anyhow::ensure;
use outbox_testkit::provider::{Answer, Provider};
use serde_json::json;

use super::figure::{each, median_of, percentile, rounded};
use super::options::Options;
use super::process::Process;
use super::report::Report;
use super::stage::Stage;

/// Rows that become due, a second.
const PER_SECOND: u64 = 10;
const HEAD_START: Duration = Duration::from_secs(3);
/// When the row is due that does not count: its id is 0.
const WARM: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

const TABLE: &str = "
    DROP TABLE IF EXISTS public.due_once;
    CREATE TABLE public.due_once (id bigint PRIMARY KEY, due timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false);
    CREATE INDEX ON public.due_once (due, id) WHERE NOT sent;
    GRANT SELECT, UPDATE (sent) ON public.due_once TO relay;
    TRUNCATE outbox.claim, outbox.sent";

/// One watch.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// How many rows became due.
    pub rows: usize,
    /// The median of their lateness in milliseconds.
    pub p50_ms: f64,
    /// The lateness that one in a hundred exceeds.
    pub p99_ms: f64,
}

/// Rows become due at random instants for `options.seconds`; one before them, for which connections are opened, does not
/// count.
pub async fn measure(stage: &Stage, options: &Options, round: usize) -> anyhow::Result<Wake> {
    let owner = stage.owner().await?;
    owner.batch_execute(TABLE).await?;
    let provider = Provider::start(|_| Answer::Accept).await?;
    let rows = i64::try_from(options.seconds * PER_SECOND)?;
    let seconds = options.seconds as f64;
    let mut offsets = vec![WARM.as_secs_f64()];
    offsets.extend((0..rows).map(|_| HEAD_START.as_secs_f64() + fastrand::f64() * seconds));
    let sql = "INSERT INTO public.due_once SELECT i - 1, now() + o * interval '1 s' \
               FROM unnest($1::float8[]) WITH ORDINALITY AS t (o, i)";
    owner.execute(sql, &[&offsets]).await?;
    let toml = format!(
        "[postgres]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"wake-{round}\"\n\
         [relay.source.pending]\ntable = \"public.due_once\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"\n\
         [relay.sink.http]\nurl = \"{}/\"\n",
        stage.url(),
        provider.url()
    );
    let mut process = Process::spawn(&toml, "r1")?;
    let begun = Instant::now();
    while provider.count() < offsets.len() {
        process.check()?;
        let patience = HEAD_START + Duration::from_secs(options.seconds) + PATIENCE;
        ensure!(begun.elapsed() < patience, "{} of {rows} rows have arrived:\n{}", provider.count(), process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process.stop().await?;
    let due = "SELECT id::text, (extract(epoch FROM due) * 1000000)::bigint FROM public.due_once";
    let due: std::collections::HashMap<String, i64> =
        owner.query(due, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut millis = Vec::new();
    for received in provider.received() {
        let id = received.request.row().rsplit('/').next().unwrap_or_default();
        if id != "0" {
            millis.push((received.request.at.unix_micros() - due[id]) as f64 / 1e3);
        }
    }
    ensure!(millis.len() + 1 == offsets.len(), "{} requests for {rows} rows", millis.len());
    ensure!(millis.iter().all(|late| *late >= 0.0), "a row came before it was due");
    Ok(Wake { rows: millis.len(), p50_ms: percentile(&mut millis, 0.50), p99_ms: percentile(&mut millis, 0.99) })
}

/// For people and programs.
pub fn tell(watched: &[Wake], report: &mut Report) {
    let of = |value: fn(&Wake) -> f64| rounded(median_of(watched, value));
    report.line("pending_wake p50", &each(watched, |wake| wake.p50_ms), "ms", "");
    report.line("pending_wake p99", &each(watched, |wake| wake.p99_ms), "ms", "");
    let runs = watched.iter().map(|run| json!({"p50_ms": rounded(run.p50_ms), "p99_ms": rounded(run.p99_ms)}));
    report
        .results
        .push(json!({"name": "pending_wake", "rows": watched.iter().map(|run| run.rows).min(), "replicas": 1,
        "p50_ms": of(|wake| wake.p50_ms), "p99_ms": of(|wake| wake.p99_ms), "runs": runs.collect::<Vec<_>>()}));
}
