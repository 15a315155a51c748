//! `sql_sink`: a backlog into a read model of the same database, beside one statement that makes the model again.
//!
//! Two models: one that gets a row for each row, and counters of 50 customers, which each row changes. The second is the
//! hard one: PostgreSQL keeps every version of a counter until the turn commits.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;

use super::figure::{median, rounded, runs};
use super::process::Process;
use super::report::Report;
use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(180);

const TABLE: &str = "
    DROP TABLE IF EXISTS public.model_source, public.model;
    CREATE TABLE public.model_source (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        customer text NOT NULL, payload text NOT NULL);
    CREATE INDEX ON public.model_source (created_at, id);
    CREATE TABLE public.model (key text PRIMARY KEY, rows bigint NOT NULL, payload text);
    GRANT SELECT ON public.model_source TO relay; GRANT SELECT, INSERT, UPDATE ON public.model TO relay";
const FILL: &str = "
    INSERT INTO public.model_source (id, customer, payload)
    SELECT i, 'c' || i % 50, rpad(i::text, 200, 'x') FROM generate_series(1, $1::bigint) AS i";

const BY_KEY: &str = "ON CONFLICT (key) DO UPDATE SET rows = m.rows + excluded.rows";

/// What the model holds, and how often the statement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `insert` or `count`.
    pub model: &'static str,
    /// `row` or `batch`.
    pub each: &'static str,
}

/// All kinds.
pub const KINDS: [Kind; 4] = [
    Kind { model: "insert", each: "row" },
    Kind { model: "insert", each: "batch" },
    Kind { model: "count", each: "row" },
    Kind { model: "count", each: "batch" },
];

/// Rows a second of one kind, per round.
#[derive(Debug)]
pub struct Models {
    /// Which.
    pub kind: Kind,
    /// How many rows.
    pub rows: u64,
    /// The relay's.
    pub relay: Vec<f64>,
    /// Of one statement over the table.
    pub raw: Vec<f64>,
}

impl Kind {
    /// The relay's statement.
    fn statement(self) -> String {
        let model = "INSERT INTO public.model AS m (key, rows, payload)";
        match (self.model, self.each) {
            ("insert", "row") => format!("{model} VALUES ($1::text, 1, $2)"),
            ("insert", _) => format!("{model} SELECT u.id::text, 1, u.p FROM unnest($1, $2) AS u (id, p)"),
            (_, "row") => format!("{model} VALUES ($1, 1, $2) {BY_KEY}"),
            _ => {
                format!("{model} SELECT u.c, count(*), min(u.p) FROM unnest($1, $2) AS u (c, p) GROUP BY u.c {BY_KEY}")
            }
        }
    }

    fn parameters(self) -> &'static str {
        if self.model == "insert" { r#"["id", "payload"]"# } else { r#"["customer", "payload"]"# }
    }

    /// The same model by one statement over the table.
    fn raw(self) -> &'static str {
        if self.model == "insert" {
            "INSERT INTO public.model SELECT id::text, 1, payload FROM public.model_source ORDER BY created_at, id"
        } else {
            "INSERT INTO public.model SELECT customer, count(*), min(payload) FROM public.model_source GROUP BY customer"
        }
    }
}

impl Models {
    /// No round yet.
    pub fn of(kind: Kind, rows: u64) -> Self {
        Self { kind, rows, relay: Vec::new(), raw: Vec::new() }
    }

    /// One round of both.
    pub async fn measure(&mut self, stage: &Stage, round: usize) -> anyhow::Result<()> {
        fill(stage, self.rows).await?;
        let owner = stage.owner().await?;
        let begun = Instant::now();
        owner.batch_execute(self.kind.raw()).await?;
        self.raw.push(self.rows as f64 / begun.elapsed().as_secs_f64());
        owner.batch_execute("TRUNCATE public.model; CHECKPOINT").await?;
        self.relay.push(relay(stage, self.kind, self.rows, round).await?);
        Ok(())
    }

    /// For people and programs.
    pub fn tell(&self, report: &mut Report) {
        let (Kind { model, each }, rows, ratio) = (self.kind, self.rows, median(&self.relay) / median(&self.raw));
        report.line(&format!("raw INSERT … SELECT, {model}"), &self.raw, "rows/s", "");
        report.line(&format!("sql_sink, {model} by {each}"), &self.relay, "rows/s", format!("ratio {ratio:.2}"));
        report.results.push(json!({"name": "sql_sink_raw", "model": model, "payload_bytes": 200, "rows": rows,
            "rows_per_second": rounded(median(&self.raw)), "runs": runs(&self.raw)}));
        report.results.push(
            json!({"name": "sql_sink", "model": model, "each": each, "payload_bytes": 200, "rows": rows,
            "cursors": 1, "replicas": 1, "rows_per_second": rounded(median(&self.relay)), "ratio": rounded(ratio),
            "runs": runs(&self.relay)}),
        );
    }
}

async fn fill(stage: &Stage, rows: u64) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    owner.batch_execute(TABLE).await?;
    owner.execute(FILL, &[&i64::try_from(rows)?]).await?;
    owner.batch_execute("VACUUM ANALYZE public.model_source").await?;
    Ok(owner.batch_execute("CHECKPOINT").await?)
}

async fn relay(stage: &Stage, kind: Kind, rows: u64, round: usize) -> anyhow::Result<f64> {
    let name = format!("model-{}-{}-{round}", kind.model, kind.each);
    let toml = format!(
        "[postgres]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"{name}\"\n\
         [relay.source.stream]\ntable = \"public.model_source\"\n[relay.sink.sql]\nstatement = \"{}\"\n\
         parameters = {}\neach = \"{}\"\n",
        stage.url(),
        kind.statement(),
        kind.parameters(),
        kind.each
    );
    let owner = stage.owner().await?;
    let cursor =
        "SELECT position_id, extract(epoch FROM advanced_at - created_at)::float8 FROM outbox.cursor WHERE name = $1";
    let mut process = Process::spawn(&toml, "r1")?;
    let (begun, last) = (Instant::now(), rows.to_string());
    let seconds: f64 = loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        process.check()?;
        if let Some(row) = owner.query_opt(cursor, &[&name]).await?
            && row.get::<_, Option<&str>>(0) == Some(last.as_str())
        {
            break row.get(1);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the model is not made within {PATIENCE:?}:\n{}", process.log());
        }
    };
    process.stop().await?;
    let counted: i64 = owner.query_one("SELECT sum(rows)::bigint FROM public.model", &[]).await?.get(0);
    ensure!(u64::try_from(counted)? == rows, "{counted} of {rows} rows are in the model");
    Ok(rows as f64 / seconds)
}
