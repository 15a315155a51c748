//! `read_raw`, `produce_raw`, `relay`: one cursor beside what the machine's PostgreSQL and Kafka can do at most.
//!
//! All of a round is measured before the next begins, so that what disturbs the machine disturbs all kinds alike.

use anyhow::Context as _;
use serde_json::json;

use super::drain::Drain;
use super::figure::{each, median, median_of, mib, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::process::Raw;
use super::report::{Goal, Report, thousands};
use super::stage::Stage;
use super::{drain, produce, read, sequential};

/// Of the relay by the slower of the two raw rates.
pub const RATIO: f64 = 0.85;
/// Of 200 bytes of text.
pub const CPU_S_PER_MILLION: f64 = 1.3;

fn rates(raw: &[Raw]) -> Vec<f64> {
    each(raw, |raw| raw.rows_per_second)
}

/// Rows a second with one kind of payload, per round.
#[derive(Debug)]
struct Rates {
    payload: Payload,
    rows: u64,
    payload_bytes: usize,
    keyset: Vec<Raw>,
    copy: Vec<Raw>,
    produce: Vec<Raw>,
    relay: Vec<Drain>,
}

/// Measures all kinds.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for payload in Payload::ALL {
        let rows = options.rows(payload);
        options.say(&format!("filling {} rows ({})", thousands(rows), payload.title()));
        stage.fill(payload, rows).await?;
        let payload_bytes = stage.payload_bytes(payload).await?;
        let (keyset, copy, produce, relay) = Default::default();
        all.push(Rates { payload, rows, payload_bytes, keyset, copy, produce, relay });
    }
    options.say("warming up");
    all[0].round(stage).await?;
    all[0].forget();
    let mut slow = Vec::new();
    for round in 1..=options.rounds {
        for rates in &mut all {
            options.say(&format!("round {round}/{}: {}", options.rounds, rates.payload.title()));
            rates.round(stage).await?;
        }
        slow.push(sequential::measure(stage, &stage.near(), Payload::Text.table(), options.sequential).await?);
    }
    for rates in &all {
        rates.report(report);
    }
    report.section("one row, one send, one UPDATE: the usual loop (text, 200 B)");
    report.line("sequential", &slow, "rows/s", "");
    report.results.push(json!({"name": "sequential", "payload": "text", "payload_bytes": all[0].payload_bytes,
        "rows": options.sequential, "cursors": 1, "replicas": 1, "rows_per_second": rounded(median(&slow)),
        "runs": runs(&slow)}));
    Ok(())
}

impl Rates {
    async fn round(&mut self, stage: &Stage) -> anyhow::Result<()> {
        let Self { payload, rows, payload_bytes, .. } = *self;
        self.keyset.push(read::keyset(stage, payload, rows).await.context("keyset")?);
        self.produce.push(produce::measure(stage, payload_bytes, rows).await.context("produce")?);
        self.copy.push(read::copy(stage, payload, rows).await.context("copy")?);
        self.relay.push(drain::measure(stage, &stage.near(), payload, rows).await.context("relay")?);
        Ok(())
    }

    fn forget(&mut self) {
        (self.keyset, self.copy, self.produce, self.relay) = Default::default();
    }

    /// The better way of reading, by its median: its name and its rounds.
    fn read(&self) -> (&'static str, &[Raw]) {
        let keyset = median(&rates(&self.keyset)) >= median(&rates(&self.copy));
        if keyset { ("keyset", &self.keyset) } else { ("COPY", &self.copy) }
    }

    /// Processor seconds for a million rows that the clients of both raw limits take together.
    fn raw_cpu(&self) -> f64 {
        [self.read().1, &self.produce].iter().map(|raw| median_of(raw, |raw| raw.cpu_s_per_million)).sum()
    }

    fn relayed(&self) -> Vec<f64> {
        each(&self.relay, |drain| drain.rows_per_second)
    }

    fn ratio(&self) -> f64 {
        median(&self.relayed()) / median(&rates(self.read().1)).min(median(&rates(&self.produce)))
    }

    fn cpu(&self) -> Vec<f64> {
        each(&self.relay, |drain| drain.cpu_s_per_million)
    }

    fn rss_max_bytes(&self) -> u64 {
        self.relay.iter().map(|drain| drain.rss_max_bytes).max().unwrap_or(0)
    }

    fn report(&self, report: &mut Report) {
        let (how, read) = self.read();
        report.section(format!("{}: {} rows, one cursor", self.payload.title(), thousands(self.rows)));
        let cpu =
            |raw: &[Raw]| format!("{:.1} s of processor per million", median_of(raw, |raw| raw.cpu_s_per_million));
        report.line(&format!("read_raw ({how})"), &rates(read), "rows/s", cpu(read));
        report.line("produce_raw", &rates(&self.produce), "rows/s", cpu(&self.produce));
        let ratio = self.ratio();
        let note = format!("{ratio:.2} of the slower raw rate; {}", Goal::Least(RATIO).told(ratio));
        report.line("relay", &self.relayed(), "rows/s", note);
        let mut cpu =
            format!("{:.2} of both raw clients, which are tuned for rate", median(&self.cpu()) / self.raw_cpu());
        if self.payload == Payload::Text {
            cpu = format!("{cpu}; {}", Goal::Most(CPU_S_PER_MILLION).told(median(&self.cpu())));
        }
        report.line("relay, processor", &self.cpu(), "s per million", cpu);
        report.line("relay, memory at most", &[mib(self.rss_max_bytes())], "MiB", "");
        self.results(report);
    }

    fn results(&self, report: &mut Report) {
        let (name, bytes, rows) = (self.payload.name(), self.payload_bytes, self.rows);
        let raw = |what: &str, each: &[Raw]| {
            json!({"name": what, "payload": name, "payload_bytes": bytes, "rows": rows,
                "rows_per_second": rounded(median(&rates(each))), "runs": runs(&rates(each)),
                "cpu_s_per_million": rounded(median_of(each, |raw| raw.cpu_s_per_million))})
        };
        let relayed = self.relayed();
        report.results.push(raw("read_raw", self.read().1));
        report.results.push(raw("produce_raw", &self.produce));
        report.results.push(
            json!({"name": "relay", "payload": name, "payload_bytes": bytes, "rows": rows, "cursors": 1,
            "replicas": 1, "rows_per_second": rounded(median(&relayed)), "ratio": rounded(self.ratio()),
            "cpu_s_per_million": rounded(median_of(&self.relay, |drain| drain.cpu_s_per_million)),
            "rss_max_bytes": self.rss_max_bytes(), "runs": runs(&relayed)}),
        );
    }
}
