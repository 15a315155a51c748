//! How claims are decided, by what can be read of the other replicas.

use super::{Claim, Entry, Registry};
use crate::cursor::replicas::{Relay, WantedRelay};
use crate::metrics;
use crate::relay::engine::not_ready::Unready;

impl Registry {
    /// What the row of this process should say. What is refused has no claim from now on; what has the claim keeps it, unless
    /// others may have taken it: then `all` claims are decided again.
    pub(super) fn wanted(&self, all: bool) -> Vec<WantedRelay> {
        let wanted = |(name, entry): (&String, &mut Entry)| {
            if entry.refused.is_some() {
                entry.claim = Claim::Released;
            }
            let waits = entry.waits && (all || entry.claim != Claim::Held);
            WantedRelay { name: name.clone(), config_hash: entry.hash.clone(), refused: entry.refused.clone(), waits }
        };
        self.entries().iter_mut().map(wanted).collect()
    }

    /// Takes in how claims were decided; what has changed since it was asked for is decided again.
    pub(super) fn decided(&self, wanted: &[WantedRelay], relays: &[Relay]) {
        for wanted in wanted.iter().filter(|wanted| wanted.refused.is_none()) {
            let Some(decided) = relays.iter().find(|relay| relay.name == wanted.name) else { continue };
            self.with(&wanted.name, |entry| {
                if entry.hash == wanted.config_hash && entry.refused.is_none() {
                    let claim = decided.refused.clone().map_or(Claim::Held, Claim::Lost);
                    tell(&wanted.name, &entry.claim, &claim);
                    if matches!(claim, Claim::Lost(_)) {
                        entry.begun = None;
                    }
                    entry.claim = claim;
                }
            });
        }
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// Nothing could be read of the other replicas: relays that have not begun do not begin.
    pub(super) fn unread(&self, unready: &Unready) {
        for entry in self.entries().values_mut().filter(|entry| entry.claim == Claim::Unknown) {
            entry.claim = Claim::Unread(unready.clone());
        }
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// Whether some claim is to be decided, which waits for no time.
    pub(super) fn is_asked(&self) -> bool {
        self.entries().values().any(|entry| matches!(entry.claim, Claim::Unknown | Claim::Unread(_)))
    }

    /// Whether another configuration has the claim of a relay that this process runs.
    pub(super) fn has_lost(&self, relays: &[Relay]) -> bool {
        self.any(relays, |claim, free| *claim == Claim::Held && !free)
    }

    /// Whether nothing has the claim any more of a relay that waits.
    pub(super) fn may_take(&self, relays: &[Relay]) -> bool {
        self.any(relays, |claim, free| matches!(claim, Claim::Lost(_)) && free)
    }

    fn any(&self, relays: &[Relay], is: impl Fn(&Claim, bool) -> bool) -> bool {
        let entries = self.entries();
        let is =
            |relay: &Relay| entries.get(&relay.name).is_some_and(|entry| is(&entry.claim, relay.refused.is_none()));
        relays.iter().any(is)
    }

    /// Whether some relay waits for another configuration's replicas.
    pub(super) fn waits(&self) -> bool {
        self.entries().values().any(|entry| matches!(entry.claim, Claim::Lost(_)))
    }
}

fn tell(cursor: &str, before: &Claim, now: &Claim) {
    metrics::set_config_waits(cursor, matches!(now, Claim::Lost(_)));
    match (before, now) {
        (Claim::Lost(_), Claim::Lost(_)) => {}
        (_, Claim::Lost(refused)) => tracing::warn!(
            cursor,
            code = refused.code,
            reason = refused.message,
            hint = format!(
                "In a rolling update the relay starts once those replicas have stopped; if `outbox-relay check` reports \
                 identity_changed, it halts then: run `outbox-relay cursor adopt {cursor}` now, which is stored and carried out at \
                 the takeover. Otherwise stop the replica with the wrong configuration; see `outbox-relay replica list`."
            ),
            "relay waits for replicas with another configuration"
        ),
        (Claim::Lost(_), Claim::Held) => tracing::info!(cursor, "no other configuration runs: relay starts"),
        _ => {}
    }
}
