//! What `outbox-relay verify` says at the end of the demo: the product's own comparison of the table with the topic, beside that
//! of the independent receivers. A difference fails the demo, except what came twice where a replica was killed.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::delivery::Verdict;
use super::replicas::{Ended, Replicas};

/// Since ever, so that nothing is sought by its time: librdkafka's in-process broker cannot do that.
const EVER: &str = "1970-01-01T00:00:00Z";

/// What a kill may cause.
const TWICE: &str = "twice";

/// The part of the document; names and types are a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Verified {
    relay: String,
    exit_code: Option<i32>,
    /// Rows that the relay has passed, of those that were compared.
    rows: u64,
    records: u64,
    /// Differences by kind.
    counts: BTreeMap<String, u64>,
    /// What it says besides; why it could not compare.
    notes: Vec<String>,
}

/// What is read of the document that `verify -o json` prints.
#[derive(Debug, Deserialize)]
struct Document {
    rows: Rows,
    counts: BTreeMap<String, u64>,
    notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Rows {
    delivered: u64,
    topic: u64,
}

impl Verified {
    /// Runs it for this relay, over the whole table and topic.
    pub(super) async fn look(replicas: &mut Replicas, relay: &str) -> anyhow::Result<Self> {
        let ended = replicas.once("verify", &["verify", relay, "--since", EVER, "-o", "json"]).await?;
        Self::read(relay, &ended)
    }

    fn read(relay: &str, ended: &Ended) -> anyhow::Result<Self> {
        let relay = relay.to_owned();
        let exit_code = ended.status.code();
        let Some(line) = ended.output.lines().find(|line| line.starts_with('{')) else {
            let notes = ended.output.lines().map(str::to_owned).collect();
            return Ok(Self { relay, exit_code, notes, ..Self::default() });
        };
        let read: Document = serde_json::from_str(line).with_context(|| format!("verify printed {line}"))?;
        let Document { rows, counts, notes } = read;
        Ok(Self { relay, exit_code, rows: rows.delivered, records: rows.topic, counts, notes })
    }

    /// What follows for the run: `committed` rows there are, and `killed` says whether anything was killed.
    pub(super) fn verdict(&self, committed: usize, killed: bool) -> Verdict {
        match self.exit_code {
            Some(0) if u64::try_from(committed) == Ok(self.rows) => Verdict::Pass,
            Some(3) if !self.counts.is_empty() => {
                let allowed = killed && self.counts.keys().all(|kind| kind == TWICE);
                if !allowed {
                    Verdict::Fail
                } else if u64::try_from(committed) == Ok(self.rows) {
                    Verdict::Pass
                } else {
                    Verdict::Undecided
                }
            }
            // It could not look, or has not looked at everything.
            Some(0 | 1) => Verdict::Undecided,
            // It was killed, it panicked, or it contradicts itself.
            Some(_) | None => Verdict::Fail,
        }
    }

    /// One line for people.
    pub(super) fn line(&self, killed: bool) -> String {
        let counts: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let (rows, records) = (self.rows, self.records);
        let said = match self.exit_code {
            Some(0) => format!("equal: {rows} rows, {records} records"),
            Some(3) if killed && self.counts.keys().all(|kind| kind == TWICE) => {
                format!("{rows} rows, {records} records, {} after the kill, nothing missing", counts.join(", "))
            }
            Some(3) => format!("different: {}; {rows} rows, {records} records", counts.join(", ")),
            Some(code) => format!("not compared, exit code {code}"),
            None => "not compared: it was killed".to_owned(),
        };
        let notes: String = self.notes.iter().map(|note| format!(" ({note})")).collect();
        format!("verify  {}: {said}{notes}", self.relay)
    }
}

#[cfg(test)]
mod tests;
