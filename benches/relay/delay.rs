//! `relay` with `delay_ms`: the same drain when PostgreSQL and Kafka are 2 ms away.
//!
//! Both ways lead through the same proxies, once without delay: what they cost by themselves must not count.

use std::time::Duration;

use serde_json::json;

use super::drain;
use super::figure::{each, median, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::report::{Goal, Report};
use super::stage::Stage;

/// There, and the same back.
const ONE_WAY: Duration = Duration::from_millis(1);
const RATIO: f64 = 0.8;

/// Measures both.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (payload, rows) = (Payload::Text, options.rows(Payload::Text));
    stage.fill(payload, rows).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 1..=options.watches {
        options.say(&format!("delay {round}/{}", options.watches));
        without.push(drain::measure(stage, &stage.far(Duration::ZERO), payload, rows).await?);
        with.push(drain::measure(stage, &stage.far(ONE_WAY), payload, rows).await?);
    }
    let rates = [&without, &with].map(|drains| each(drains, |drain| drain.rows_per_second));
    let ratio = median(&rates[1]) / median(&rates[0]);
    let direct = report.found("relay", payload.name()).map(|direct| median(&rates[1]) / direct);
    report.section("text, 200 B, servers behind proxies");
    report.line("relay, proxies without delay", &rates[0], "rows/s", "");
    let beside = direct.map_or(String::new(), |direct| format!(", {direct:.2} of that without proxies"));
    let note = format!("{ratio:.2} of that{beside}; {}", Goal::Least(RATIO).told(ratio));
    report.line("relay, 2 ms round trip", &rates[1], "rows/s", note);
    report.results.push(json!({"name": "relay", "payload": payload.name(),
        "payload_bytes": stage.payload_bytes(payload).await?, "rows": rows, "cursors": 1, "replicas": 1, "delay_ms": 2,
        "rows_per_second": rounded(median(&rates[1])), "ratio": rounded(ratio),
        "without_delay": rounded(median(&rates[0])), "runs": runs(&rates[1])}));
    Ok(())
}
