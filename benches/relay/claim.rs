//! `pending_claim`: how many rows of due work are claimed and marked a second, beside a loop of `UPDATE … RETURNING`.
//!
//! The receiver is standard output, which takes a row at once: what is measured is the way of a row through the database.
//! All rows become due at one instant, for which the replicas wait; the last mark, a timestamp, is the end.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;

use super::figure::{median, rounded, runs};
use super::process::Process;
use super::report::Report;
use super::stage::Stage;

/// Rows a claim, of the relay (its default) and of the raw loop.
pub const LIMIT: usize = 100;
/// Until the rows are due: the replicas must be there.
const HEAD_START: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);

const TABLE: &str = "
    DROP TABLE IF EXISTS public.due_work;
    CREATE TABLE public.due_work (id bigint PRIMARY KEY, due timestamptz NOT NULL, sent_at timestamptz, payload text NOT NULL);
    CREATE INDEX ON public.due_work (due, id) WHERE sent_at IS NULL;
    GRANT SELECT, UPDATE (sent_at) ON public.due_work TO relay;
    TRUNCATE outbox.claim, outbox.sent";
const FILL: &str = "
    INSERT INTO public.due_work SELECT i, now() + $2::float8 * interval '1 s', NULL, rpad(i::text, 200, 'x')
    FROM generate_series(1, $1::bigint) AS i";
/// What a team writes by hand, without sending anything.
const RAW: &str = "
    UPDATE public.due_work SET sent_at = clock_timestamp() WHERE id IN (
        SELECT id FROM public.due_work WHERE sent_at IS NULL AND due <= now() ORDER BY due, id LIMIT $1
        FOR UPDATE SKIP LOCKED)
    RETURNING id, payload";

/// Rows a second with so many replicas, per round.
#[derive(Debug)]
pub struct Claims {
    /// How many.
    pub replicas: usize,
    /// How many rows.
    pub rows: u64,
    /// The relay's.
    pub relay: Vec<f64>,
    /// The raw loop's, by as many connections.
    pub raw: Vec<f64>,
}

impl Claims {
    /// No round yet.
    pub fn of(replicas: usize, rows: u64) -> Self {
        Self { replicas, rows, relay: Vec::new(), raw: Vec::new() }
    }

    /// One round of both.
    pub async fn measure(&mut self, stage: &Stage, round: usize) -> anyhow::Result<()> {
        self.raw.push(raw(stage, self.replicas, self.rows).await?);
        self.relay.push(relay(stage, self.replicas, self.rows, round).await?);
        Ok(())
    }

    /// For people and programs.
    pub fn tell(&self, report: &mut Report) {
        let (replicas, rows, ratio) = (self.replicas, self.rows, median(&self.relay) / median(&self.raw));
        report.line(&format!("raw UPDATE … RETURNING, {replicas} loops"), &self.raw, "rows/s", "");
        report.line(&format!("pending_claim, {replicas} replicas"), &self.relay, "rows/s", format!("ratio {ratio:.2}"));
        report.results.push(json!({"name": "pending_claim_raw", "rows": rows, "replicas": replicas,
            "rows_per_second": rounded(median(&self.raw)), "runs": runs(&self.raw)}));
        report.results.push(json!({"name": "pending_claim", "rows": rows, "replicas": replicas,
            "rows_per_second": rounded(median(&self.relay)), "ratio": rounded(ratio), "runs": runs(&self.relay)}));
    }
}

async fn fill(stage: &Stage, rows: u64, due_in: Duration) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    owner.batch_execute(TABLE).await?;
    owner.execute(FILL, &[&i64::try_from(rows)?, &due_in.as_secs_f64()]).await?;
    owner.batch_execute("VACUUM ANALYZE public.due_work").await?;
    Ok(owner.batch_execute("CHECKPOINT").await?)
}

async fn raw(stage: &Stage, connections: usize, rows: u64) -> anyhow::Result<f64> {
    fill(stage, rows, Duration::ZERO).await?;
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(stage.owner().await?);
    }
    let begun = Instant::now();
    let loops = clients.into_iter().map(|client| async move {
        let claim = client.prepare(RAW).await?;
        let mut done = 0;
        loop {
            let rows = client.query(&claim, &[&i64::try_from(LIMIT)?]).await?;
            if rows.is_empty() {
                return anyhow::Ok(done);
            }
            done += rows.len();
        }
    });
    let done: usize = futures_util::future::try_join_all(loops).await?.iter().sum();
    let took = begun.elapsed();
    ensure!(u64::try_from(done)? == rows, "{done} of {rows} rows were marked");
    Ok(rows as f64 / took.as_secs_f64())
}

async fn relay(stage: &Stage, replicas: usize, rows: u64, round: usize) -> anyhow::Result<f64> {
    fill(stage, rows, HEAD_START).await?;
    let toml = format!(
        "[postgres]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"claim-{replicas}-{round}\"\n\
         [relay.source.pending]\ntable = \"public.due_work\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent_at\"\n\
         limit = {LIMIT}\n[relay.sink.stdout]\n",
        stage.url()
    );
    let started = (1..=replicas).map(|number| Process::spawn(&toml, &format!("r{number}")));
    let mut processes = started.collect::<anyhow::Result<Vec<_>>>()?;
    let owner = stage.owner().await?;
    let early = "SELECT count(*) FROM public.due_work WHERE due <= now()";
    ensure!(
        owner.query_one(early, &[]).await?.get::<_, i64>(0) == 0,
        "the rows were due before the replicas were there"
    );
    let begun = Instant::now();
    while owner.query_one("SELECT EXISTS (SELECT FROM public.due_work WHERE sent_at IS NULL)", &[]).await?.get(0) {
        for process in &mut processes {
            process.check()?;
        }
        if begun.elapsed() > PATIENCE {
            bail!("not all of {rows} rows were marked within {PATIENCE:?}:\n{}", processes[0].log());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = "SELECT extract(epoch FROM max(sent_at) - max(due))::float8 FROM public.due_work";
    let took: f64 = owner.query_one(took, &[]).await?.get(0);
    for process in processes {
        process.stop().await?;
    }
    Ok(rows as f64 / took)
}
