//! What promotions have undone, as `verify` says and as consumers know.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Instant;

use serde_json::json;

use super::RELAYS;

const LINES: &str = "target/soak/promotions.jsonl";
/// So many failures are printed.
const PRINTED: usize = 20;

/// Of one relay.
#[derive(Debug, Default)]
struct Relay {
    /// Rows in its topic that are not in the table, by `verify`.
    undone: BTreeSet<String>,
    /// In how many promotions that were some.
    promotions: usize,
    /// The same by its consumer, in the end.
    received: BTreeSet<String>,
    /// What else `verify` named, but for rows that came again.
    others: BTreeSet<(String, String)>,
    /// Rows of the table that have not arrived in the end.
    lost: usize,
    /// Rows that have arrived in the end.
    arrived: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Tally {
    /// How many standbys have been promoted.
    pub promotions: usize,
    /// How many rows the writers have committed.
    pub written: u64,
    relays: [Relay; 2],
    begun: Instant,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { promotions: 0, written: 0, relays: Default::default(), begun: Instant::now() }
    }

    /// Takes in what `verify` names of a relay: kind and id.
    pub fn add(&mut self, number: usize, named: Vec<(String, String)>) {
        let Some(relay) = self.relays.get_mut(number) else { return };
        let before = relay.undone.len();
        for (kind, id) in named {
            match kind.as_str() {
                "not_in_table" => {
                    relay.undone.insert(id);
                }
                // The position goes back with the server.
                "twice" => {}
                _ => {
                    relay.others.insert((kind, id));
                }
            }
        }
        relay.promotions += usize::from(relay.undone.len() > before);
    }

    /// Takes in what the table has in the end, and what has arrived.
    pub fn close(&mut self, number: usize, table: &BTreeSet<String>, arrived: &BTreeSet<String>) {
        let Some(relay) = self.relays.get_mut(number) else { return };
        relay.received = arrived.difference(table).cloned().collect();
        relay.lost = table.difference(arrived).count();
        relay.arrived = arrived.len();
    }

    /// Where it stands.
    pub fn line(&self) -> String {
        let [local, kept] = &self.relays;
        format!(
            "{:4} promotions, {:6.0} s, {} rows; published and undone: local {}, standby {}",
            self.promotions,
            self.begun.elapsed().as_secs_f64(),
            self.written,
            local.undone.len(),
            kept.undone.len()
        )
    }

    /// Prints the result, adds it to `target/soak/promotions.jsonl`, and gives what the program ends with.
    pub fn tell(&self, seed: u64) -> anyhow::Result<u8> {
        let seconds = self.begun.elapsed().as_secs();
        println!();
        println!("{} promotions in {seconds} s, {} rows committed", self.promotions, self.written);
        println!(
            "{:<8}{:>10}{:>28}{:>28}{:>20}{:>8}",
            "relay", "arrived", "undone rows, by verify", "undone rows, by a consumer", "in promotions", "lost"
        );
        for ((name, _), relay) in RELAYS.iter().zip(&self.relays) {
            let Relay { undone, promotions, received, lost, arrived, .. } = relay;
            let (undone, received) = (undone.len(), received.len());
            println!("{name:<8}{arrived:>10}{undone:>28}{received:>28}{promotions:>20}{lost:>8}");
        }
        let failures = self.failures();
        for failure in failures.iter().take(PRINTED) {
            println!("FAILED: {failure}");
        }
        println!("seed {seed}: {}", if failures.is_empty() { "pass" } else { "FAILED" });
        let of = |value: fn(&Relay) -> usize| self.relays.each_ref().map(value);
        let line = json!({"at": chrono::Utc::now().to_rfc3339(), "seed": seed, "promotions": self.promotions,
            "rows": self.written, "relays": RELAYS.map(|(name, _)| name), "undone": of(|relay| relay.undone.len()),
            "in_promotions": of(|relay| relay.promotions), "lost": of(|relay| relay.lost), "failures": failures,
            "seconds": seconds});
        let mut file = std::fs::File::options().create(true).append(true).open(LINES)?;
        writeln!(file, "{line}")?;
        Ok(u8::from(!failures.is_empty()))
    }

    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for ((name, _), relay) in RELAYS.iter().zip(&self.relays) {
            if relay.undone != relay.received {
                let (verify, consumer) = (relay.undone.len(), relay.received.len());
                failures.push(format!(
                    "{name}: verify names {verify} undone rows, and a consumer has others or {consumer}"
                ));
            }
            if relay.lost > 0 {
                failures.push(format!("{name}: {} rows of the table have not arrived", relay.lost));
            }
            failures.extend(relay.others.iter().map(|(kind, id)| format!("{name}: verify says {kind} of {id}")));
        }
        let [local, kept] = &self.relays;
        if local.undone.is_empty() {
            failures.push("nothing was undone under local: the promotions prove nothing".to_owned());
        }
        if !kept.undone.is_empty() {
            failures.push(format!("{} published rows were undone under standby", kept.undone.len()));
        }
        failures
    }
}
