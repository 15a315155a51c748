//! Which relays of the configuration a command is about.

use super::problem::{Place, Problem, Problems};
use super::{Config, DEFAULT_FILE, keys};
use crate::relay;

/// So many names of relays are printed.
const SHOWN: usize = 20;

/// Why no relays could be chosen: a usage error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchosen {
    /// An argument names a relay that is not configured, which the text says: nothing is wrong with the file.
    #[error("{0}")]
    Unknown(String),
    /// None is configured.
    #[error(transparent)]
    NoRelay(#[from] Problems),
}

impl Config {
    /// Only the relays, or shards, of these names; all when there are none.
    ///
    /// # Errors
    /// When there is no relay of such a name, or neither a relay nor an intake.
    pub fn only(mut self, names: &[String]) -> Result<Self, Unchosen> {
        let mut known: Vec<&str> = self.relays.iter().map(|relay| relay.relay.as_str()).collect();
        known.dedup();
        if known.is_empty() && (self.intake.is_none() || !names.is_empty()) {
            return Err(none_configured().into());
        }
        let is_named = |relay: &relay::Config, name: &str| relay.name == name || relay.relay == name;
        let is_unknown = |name: &&str| !self.relays.iter().any(|relay| is_named(relay, name));
        let unknown: Vec<&str> = names.iter().map(String::as_str).filter(is_unknown).collect();
        if !unknown.is_empty() {
            return Err(Unchosen::Unknown(not_configured(&unknown, &known)));
        }
        if !names.is_empty() {
            self.relays.retain(|relay| names.iter().any(|name| is_named(relay, name)));
        }
        Ok(self)
    }
}

fn not_configured(unknown: &[&str], known: &[&str]) -> String {
    let shown = known.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if known.len() > SHOWN { ", …" } else { "" };
    let meant = unknown.iter().find_map(|name| keys::nearest(name, known.iter().copied()));
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
    format!("no relay {} is configured; configured are: {shown}{more}{meant}", unknown.join(" or "))
}

fn none_configured() -> Problems {
    let fix = format!(
        "add a section [[relay]] to the configuration file: --config FILE, else OUTBOX_RELAY_CONFIG, else ./{DEFAULT_FILE}"
    );
    let problem = Problem {
        place: Place::File,
        key: "relay".to_owned(),
        value: None,
        what: "no relay is configured".to_owned(),
        fix,
        missing: true,
    };
    Problems::new(Some("configuration".to_owned()), vec![problem])
}
