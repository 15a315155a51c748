//! `telemetry`: what spans cost the relay at a steady rate of single rows, beside the same without them.
//!
//! Each row has a trace context of its own, in all watches. The spans go to a collector of the bench's own, which takes them
//! at once.

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_postgres::Client;

use super::figure::{each, median, median_of, rounded, runs};
use super::latency::{self, Latency, PER_SECOND, Watched};
use super::options::Options;
use super::report::{Goal, Report, thousands};
use super::stage::Stage;

/// The table whose rows have a trace context.
const TRACED: &str = "public.bookings_traced";
/// More with spans than without, of a core.
const PERCENT: f64 = 2.0;
/// For how much longer than others it is watched: the difference of two loads is small beside both.
const TIMES: u64 = 2;

/// How much is exported.
#[derive(Clone, Copy, Debug)]
struct Way {
    what: &'static str,
    exports: bool,
    /// The share of the rows whose trace is sampled.
    share: f64,
}

const WAYS: [Way; 3] = [
    Way { what: "nothing", exports: false, share: 1.0 },
    Way { what: "one trace in twenty", exports: true, share: 0.05 },
    Way { what: "every trace", exports: true, share: 1.0 },
];

/// Watches the ways in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    stage.table(TRACED).await?;
    owner.batch_execute(&format!("ALTER TABLE {TRACED} ADD COLUMN traceparent text")).await?;
    let sections = format!("[telemetry]\notlp = \"{}\"\n", collector().await?);
    let rounds = options.watches + 1;
    let mut all = WAYS.map(|_| Vec::new());
    for round in 1..=rounds {
        for (way, watched) in WAYS.iter().zip(&mut all) {
            options.say(&format!("telemetry {round}/{rounds}: {}", way.what));
            sample(&owner, way.share).await?;
            let what = Watched {
                table: TRACED,
                seconds: options.seconds * TIMES,
                per_second: PER_SECOND,
                replicas: 1,
                window: "1ms",
                lines: "",
                sections: if way.exports { &sections } else { "" },
            };
            watched.push(latency::watch(stage, what).await?);
        }
    }
    tell(report, &all);
    Ok(())
}

/// Gives rows without one a random trace context from now on, of which this share is sampled.
async fn sample(owner: &Client, share: f64) -> anyhow::Result<()> {
    let sql = format!(
        "ALTER TABLE {TRACED} ALTER COLUMN traceparent SET DEFAULT '00-' || md5(random()::text) || '-' || \
         left(md5(random()::text), 16) || CASE WHEN random() < {share} THEN '-01' ELSE '-00' END"
    );
    Ok(owner.batch_execute(&sql).await?)
}

/// The address of a collector that takes whatever it is sent, until the process ends.
async fn collector() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

/// Nothing is an answer of OTLP that rejects no span.
async fn take(_spans: Bytes) -> [(HeaderName, &'static str); 1] {
    [(CONTENT_TYPE, "application/x-protobuf")]
}

fn tell(report: &mut Report, all: &[Vec<Latency>; WAYS.len()]) {
    let told = thousands(PER_SECOND.into());
    report.section(format!("telemetry at {told} rows/s, one replica, latency_window 1 ms, a traceparent in each row"));
    for (way, watched) in WAYS.iter().zip(all) {
        let of = |value: fn(&Latency) -> f64| each(watched, value);
        // Beside each other in the same round: what disturbs one disturbs the other.
        let more: Vec<f64> = watched.iter().zip(&all[0]).map(|(on, off)| on.percent - off.percent).collect();
        report.line(&format!("relay, exporting {}", way.what), &of(|watch| watch.percent), "% of a core", "");
        if way.exports {
            report.judged("more than exporting nothing", &more, "% of a core", Goal::Most(PERCENT));
            report.line("spans that were taken", &of(|watch| watch.spans_per_second), "per second", "");
            report.line("spans that were dropped", &of(|watch| watch.spans_dropped), "in all", "");
        }
        report.line("rows really written", &of(|watch| watch.per_second), "rows/s", "");
        report.results.push(json!({"name": "telemetry", "what": way.what, "payload": "text", "payload_bytes": 200, "cursors": 1,
            "replicas": 1, "target_per_second": PER_SECOND,
            "rows_per_second": rounded(median_of(watched, |watch| watch.per_second)),
            "cpu_percent": rounded(median_of(watched, |watch| watch.percent)), "core_percent_more": rounded(median(&more)),
            "spans_per_second": rounded(median_of(watched, |watch| watch.spans_per_second)), "runs": runs(&more)}));
    }
}
