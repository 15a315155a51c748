//! What this process relays, for other replicas and for operators, and which of its relays it may run.
//!
//! Of a relay that live replicas have with different configurations, those of one configuration run it, and the others
//! wait: two configurations never take turns at one cursor, as their messages would interleave. The first to have the claim
//! keeps it until it stops, refuses the relay or has no session any more. [`upkeep`] talks to the database; everything here
//! is in memory, so that a turn costs no statement for it.
//!
//! A relay begins only after claims have been decided once; while nothing can be read of the other replicas it does not
//! begin, as with any check that cannot be made. One that runs goes on, whatever can be read or written.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::cursor::replicas::RefusedRelay;
use crate::metrics;
use crate::relay::engine::config_hash;
use crate::relay::engine::not_ready::Unready;
use crate::relay::{Config, OnConfigChange};

mod decide;
mod upkeep;

pub(in crate::relay) use upkeep::{run, stop};

/// The relays of this process, and what is known of their claims.
#[derive(Debug)]
pub(in crate::relay) struct Registry {
    /// Names the process.
    instance: String,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Rings when a claim is to be decided.
    asked: Notify,
    /// How many answers there have been.
    answers: watch::Sender<u64>,
}

#[derive(Debug)]
struct Entry {
    relay: String,
    hash: String,
    waits: bool,
    /// Why its own checks keep it from running.
    refused: Option<RefusedRelay>,
    claim: Claim,
    /// Under which fingerprint it has begun, since no other configuration had the claim.
    begun: Option<String>,
}

/// Whether this process may run a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Claim {
    /// Not decided yet.
    Unknown,
    /// Nothing could be read of the other replicas.
    Unread(Unready),
    /// It may.
    Held,
    /// It refuses the relay, and another configuration may have the claim meanwhile.
    Released,
    /// Another configuration has it.
    Lost(RefusedRelay),
}

impl Registry {
    /// Of a process with these relays.
    #[must_use]
    pub(in crate::relay) fn new(relays: &[Config]) -> Self {
        let entry = |relay: &Config| {
            let waits = relay.on_config_change == OnConfigChange::Wait;
            let (hash, refused) = match config_hash::of(relay) {
                Ok(hash) => (hash, None),
                Err(setting) => (config_hash::UNREADABLE.to_owned(), refused(&Unready::invalid(&[setting]))),
            };
            let (claim, begun) = (Claim::Unknown, None);
            (relay.name.clone(), Entry { relay: relay.relay.clone(), hash, waits, refused, claim, begun })
        };
        Self {
            instance: instance(),
            entries: Mutex::new(relays.iter().map(entry).collect()),
            asked: Notify::new(),
            answers: watch::Sender::default(),
        }
    }

    /// Names the process, as in `outbox.replica`.
    pub(in crate::relay) fn instance(&self) -> &str {
        &self.instance
    }

    /// Waits until this process may run a relay, or `stop`.
    ///
    /// # Errors
    /// When nothing can be read of the other replicas, or a file of the configuration cannot be read.
    pub(in crate::relay) async fn admitted(&self, config: &Config, stop: &CancellationToken) -> Result<(), Unready> {
        let mut answers = self.answers.subscribe();
        match config_hash::of(config) {
            Ok(hash) => self.hash(&config.name, hash),
            Err(setting) => {
                // Refused before the row says which configuration it has: it is not compared with others.
                let unready = Unready::invalid(&[setting]);
                self.refuse(&config.name, &unready);
                self.hash(&config.name, config_hash::UNREADABLE.to_owned());
                return Err(unready);
            }
        }
        loop {
            match self.claim(&config.name) {
                Claim::Held | Claim::Released => return Ok(()),
                Claim::Unread(unready) => return Err(unready),
                Claim::Unknown | Claim::Lost(_) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                _ = answers.changed() => {}
            }
        }
    }

    /// Takes the claim again after the relay's own checks had refused it.
    ///
    /// # Errors
    /// When another configuration has it now, or that cannot be known within `patience`.
    pub(in crate::relay) async fn hold(&self, name: &str, patience: Duration) -> Result<(), Unready> {
        let mut answers = self.answers.subscribe();
        self.accept(name);
        let held = async {
            loop {
                match self.claim(name) {
                    Claim::Held => return Ok(()),
                    Claim::Unread(unready) => return Err(unready),
                    Claim::Lost(_) => return Err(Unready::Waiting),
                    Claim::Unknown | Claim::Released => {}
                }
                if answers.changed().await.is_err() {
                    return Err(Unready::Waiting);
                }
            }
        };
        tokio::time::timeout(patience, held).await.unwrap_or(Err(Unready::Waiting))
    }

    /// Whether a relay that has passed its checks begins with this fingerprint: not when they only ran again.
    pub(in crate::relay) fn begins(&self, name: &str, fingerprint: &str) -> bool {
        self.with(name, |entry| entry.begun.as_deref() != Some(fingerprint)).unwrap_or(true)
    }

    /// It has begun with it.
    pub(in crate::relay) fn begun(&self, name: &str, fingerprint: &str) {
        self.with(name, |entry| entry.begun = Some(fingerprint.to_owned()));
    }

    /// Whether a relay that runs must give way to another configuration.
    pub(in crate::relay) fn gives_way(&self, name: &str) -> bool {
        matches!(self.claim(name), Claim::Lost(_))
    }

    /// Why this process does not run a relay, as far as other replicas decide that.
    pub(in crate::relay) fn waits_for(&self, name: &str) -> Option<String> {
        match self.claim(name) {
            Claim::Lost(refused) => Some(refused.message),
            Claim::Unknown | Claim::Unread(_) | Claim::Held | Claim::Released => None,
        }
    }

    /// The relay's own checks keep it from running.
    pub(in crate::relay) fn refuse(&self, name: &str, unready: &Unready) {
        self.with(name, |entry| entry.refused = refused(unready));
    }

    /// The relay's own checks have passed.
    fn accept(&self, name: &str) {
        let asks = self.with(name, |entry| {
            entry.refused = None;
            let asks = matches!(entry.claim, Claim::Released);
            if asks {
                entry.claim = Claim::Unknown;
            }
            asks
        });
        if asks == Some(true) {
            self.asked.notify_one();
        }
    }

    /// A file of the configuration may be another than at the start: what it says now is claimed.
    fn hash(&self, name: &str, hash: String) {
        let changed = self.with(name, |entry| {
            let before = std::mem::replace(&mut entry.hash, hash.clone());
            let changed = before != hash;
            if changed {
                metrics::set_config(&entry.relay, &before, false);
                entry.claim = Claim::Unknown;
            }
            metrics::set_config(&entry.relay, &hash, true);
            changed
        });
        if changed == Some(true) {
            self.asked.notify_one();
        }
    }

    fn claim(&self, name: &str) -> Claim {
        // A relay that is not this process's never asks.
        self.with(name, |entry| entry.claim.clone()).unwrap_or(Claim::Held)
    }

    fn with<T>(&self, name: &str, what: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.entries().get_mut(name).map(what)
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a row says of a relay that may not run.
fn refused(unready: &Unready) -> Option<RefusedRelay> {
    match unready {
        Unready::Wrong { code, message, .. } => {
            Some(RefusedRelay { code: code.clone(), message: message.replace('\0', "\u{fffd}") })
        }
        Unready::Waiting => None,
    }
}

/// A random UUID.
fn instance() -> String {
    let random = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{random:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
