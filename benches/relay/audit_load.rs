//! `audit`, second half: what it costs to record what is passed at a steady rate of single rows, beside the same without it.

use serde_json::json;

use super::figure::{each, median, rounded, runs};
use super::latency::{self, Latency, PER_SECOND, Watched};
use super::options::Options;
use super::report::{Goal, Report, thousands};
use super::stage::{LIVE, Stage};

const OFF: &str = "[audit]\nenabled = false\n";
/// Of a core, of the relay and of PostgreSQL together.
const PERCENT: f64 = 2.0;
/// Of WAL, for each row.
const BYTES: f64 = 60.0;
/// For how much longer than others it is watched: the difference of two loads is small beside both.
const TIMES: u64 = 2;

/// Watches loads with and without the audit in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rounds = options.watches + 1;
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for (sections, watched) in [(OFF, &mut off), ("", &mut on)] {
            let word = if sections.is_empty() { "on" } else { "off" };
            options.say(&format!("audit at {}/s, {round}/{rounds}: {word}", thousands(PER_SECOND.into())));
            let seconds = options.seconds * TIMES;
            let what = Watched {
                table: LIVE,
                seconds,
                per_second: PER_SECOND,
                replicas: 1,
                window: "5ms",
                lines: "",
                sections,
            };
            watched.push(latency::watch(stage, what).await?);
        }
    }
    tell(report, &off, &on);
    Ok(())
}

fn tell(report: &mut Report, off: &[Latency], on: &[Latency]) {
    report.section(format!("audit at {} rows/s, one replica", thousands(PER_SECOND.into())));
    let percent = |watch: &Latency| watch.percent + watch.postgres_percent;
    let bytes = |watch: &Latency| watch.wal_per_second / watch.per_second;
    report.line("without it", &each(off, percent), "% of a core", "relay and PostgreSQL, writers included");
    // Beside each other in the same round: what disturbs one disturbs the other.
    let more = |value: &dyn Fn(&Latency) -> f64| -> Vec<f64> {
        on.iter().zip(off).map(|(on, off)| value(on) - value(off)).collect()
    };
    let (cpu, wal) = (more(&percent), more(&bytes));
    report.judged("more with it", &cpu, "% of a core", Goal::Most(PERCENT));
    report.line("WAL without it", &each(off, bytes), "B per row", "writers included");
    report.judged("more WAL with it", &wal, "B per row", Goal::Most(BYTES));
    report.results.push(
        json!({"name": "audit", "what": "steady", "payload": "text", "payload_bytes": 200, "cursors": 1, "replicas": 1,
        "target_per_second": PER_SECOND, "core_percent_more": rounded(median(&cpu)),
        "wal_bytes_per_row_more": rounded(median(&wal)), "runs": runs(&cpu), "wal_runs": runs(&wal)}),
    );
}
