//! `compare`: the loop that most teams write first, beside the relay, over the same rows and the same servers.

use std::time::Duration;

use serde_json::json;

use super::figure::{each, median, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::report::{Report, thousands};
use super::stage::{Stage, Way};
use super::{drain, sequential};

/// With this delay the loop needs so much longer that it gets a part of the rows.
const ONE_WAY: Duration = Duration::from_millis(1);
const PART: u64 = 10;

/// Compares on this machine, and with 2 ms to both servers.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rows = options.compared;
    // The relay's start, its first turn and its end are part of its time: few rows make it look slower.
    stage.fill(Payload::Text, rows).await?;
    for (title, way, slow_rows) in
        [("on one machine", stage.near(), rows), ("2 ms round trip", stage.far(ONE_WAY), (rows / PART).max(1))]
    {
        pair(stage, options, report, (title, &way), slow_rows).await?;
    }
    Ok(())
}

async fn pair(
    stage: &Stage,
    options: &Options,
    report: &mut Report,
    (title, way): (&str, &Way),
    slow_rows: u64,
) -> anyhow::Result<()> {
    let (mut ours, mut slow) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        options.say(&format!("compare {round}/{}, {title}", options.rounds));
        ours.push(drain::measure(stage, way, Payload::Text, options.compared).await?);
        slow.push(sequential::measure(stage, way, Payload::Text.table(), slow_rows).await?);
    }
    let ours = each(&ours, |drain| drain.rows_per_second);
    let factor = median(&ours) / median(&slow);
    report.section(format!("{} rows of text, 200 B, {title}", thousands(options.compared)));
    let part = format!("one row, one send, one UPDATE; {} rows", thousands(slow_rows));
    report.line("sequential", &slow, "rows/s", part);
    report.line("relay", &ours, "rows/s", format!("{factor:.0} times as many"));
    let delay = if way.url == stage.url() { 0 } else { 2 };
    for (name, rows, rates) in [("relay", options.compared, &ours), ("sequential", slow_rows, &slow)] {
        report.results.push(json!({"name": name, "payload": "text", "payload_bytes": 200, "rows": rows, "cursors": 1,
            "replicas": 1, "delay_ms": delay, "rows_per_second": rounded(median(rates)), "runs": runs(rates)}));
    }
    Ok(())
}
