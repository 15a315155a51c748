//! What a relay counts of its own work, as it shows it by `/metrics`.

use anyhow::Context as _;

/// Since it began, or since an earlier look.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    latency_sum: f64,
    latency_count: f64,
    /// Spans that its collector has taken.
    pub spans_exported: f64,
    /// Spans that were dropped.
    pub spans_dropped: f64,
}

impl Shown {
    /// Asks the relay that listens there.
    pub async fn ask(admin: &str) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let text = client.get(format!("http://{admin}/metrics")).send().await?.text().await?;
        let value = |name: &str| -> anyhow::Result<f64> {
            let prefix = format!("outbox_relay_{name}");
            let is_it = |line: &&str| line.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let line = text.lines().find(is_it).with_context(|| format!("no {prefix}"))?;
            Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
        };
        Ok(Self {
            latency_sum: value("delivery_latency_seconds_sum")?,
            latency_count: value("delivery_latency_seconds_count")?,
            spans_exported: value("spans_exported_total")?,
            spans_dropped: value("spans_dropped_total")?,
        })
    }

    /// What has been added to an earlier look.
    pub fn since(self, before: &Self) -> Self {
        Self {
            latency_sum: self.latency_sum - before.latency_sum,
            latency_count: self.latency_count - before.latency_count,
            spans_exported: self.spans_exported - before.spans_exported,
            spans_dropped: self.spans_dropped - before.spans_dropped,
        }
    }

    /// The mean of `delivery_latency_seconds`, in milliseconds.
    pub fn latency_mean_ms(&self) -> f64 {
        self.latency_sum * 1e3 / self.latency_count
    }
}
