//! What was measured, and what is made of it.

use super::ask::Asked;
use super::claim::Claims;
use super::drain::Drain;
use super::idle::Idle;
use super::latency::Latency;
use super::payload::Payload;
use super::read_model::Models;
use super::schedules::Watched;
use super::wake::Wake;

/// All of a run; what was not asked for is empty.
#[derive(Debug, Default)]
pub struct Figures {
    /// With a text payload.
    pub text: Rates,
    /// With the whole row.
    pub row: Rates,
    /// Rows a second.
    pub sequential: Vec<f64>,
    /// Per round.
    pub latency: Vec<Latency>,
    /// Milliseconds of each take-over.
    pub takeover: Vec<f64>,
    /// Once.
    pub idle: Option<Idle>,
    /// Per number of replicas.
    pub claims: Vec<Claims>,
    /// Per round.
    pub wake: Vec<Wake>,
    /// Per kind of read model.
    pub models: Vec<Models>,
    /// Per round.
    pub asked: Vec<Asked>,
    /// Next occurrences a second, per round.
    pub rules: Vec<f64>,
    /// Once.
    pub schedules: Option<Watched>,
}

/// Rows a second with one kind of payload, per round.
#[derive(Debug, Default)]
pub struct Rates {
    /// How many rows.
    pub rows: u64,
    /// Of a record's value.
    pub payload_bytes: usize,
    /// Reading by keyset.
    pub keyset: Vec<f64>,
    /// Reading by COPY.
    pub copy: Vec<f64>,
    /// Producing.
    pub produce: Vec<f64>,
    /// End to end.
    pub relay: Vec<Drain>,
}

impl Figures {
    /// The rates of one payload.
    pub fn of(&mut self, payload: Payload) -> &mut Rates {
        match payload {
            Payload::Text => &mut self.text,
            Payload::Row => &mut self.row,
        }
    }
}

impl Rates {
    /// The better way of reading, by its median: its name and its rounds.
    pub fn read(&self) -> (&'static str, &[f64]) {
        if median(&self.keyset) >= median(&self.copy) { ("keyset", &self.keyset) } else { ("COPY", &self.copy) }
    }

    /// End to end.
    pub fn relayed(&self) -> Vec<f64> {
        self.relay.iter().map(|drain| drain.rows_per_second).collect()
    }

    /// The relay's rate by the slower of the two raw ones.
    pub fn ratio(&self) -> f64 {
        median(&self.relayed()) / median(self.read().1).min(median(&self.produce))
    }

    /// The median of the relay's processor seconds for a million rows.
    pub fn cpu_s_per_million(&self) -> f64 {
        median(&self.relay.iter().map(|drain| drain.cpu_s_per_million).collect::<Vec<_>>())
    }

    /// The most memory of all rounds.
    pub fn rss_max_bytes(&self) -> u64 {
        self.relay.iter().map(|drain| drain.rss_max_bytes).max().unwrap_or(0)
    }
}

/// The median; not a number when there is none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len if len.is_multiple_of(2) => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
        len => sorted[len / 2],
    }
}

/// The value that the part `p` of all do not exceed; sorts them.
pub fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * p).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}
