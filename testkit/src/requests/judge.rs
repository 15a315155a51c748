//! The verdict: what was asked for, against the ledger, against what the providers have. It knows nothing of the relay.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::delivery::Verdict;
use outbox_relay::position::Timestamp;

/// What a caller was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The key of what is to be sent once.
    pub(super) about: String,
    /// The request's id.
    pub(super) id: String,
    pub(super) status: String,
    pub(super) already_sent: bool,
    /// When the answer was there.
    pub(super) at: Timestamp,
}

/// A request of the ledger at the end.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) relay: String,
    pub(super) about: String,
    pub(super) id: String,
    pub(super) status: String,
}

/// A message that a provider has got: accepted, or not.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The idempotency key without the relay's name: the request's id.
    pub(super) id: String,
    pub(super) body: String,
    pub(super) at: Timestamp,
    pub(super) accepted: bool,
    /// The provider told the sender what became of it.
    pub(super) answered: bool,
}

/// Everything that the ledger says at the end, the lists that people see among it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entries: Vec<Entry>,
    /// Ids that are listed as unknown.
    pub(super) unknown: HashSet<String>,
    /// Ids that are listed as having had an outcome that nobody knew.
    pub(super) ambiguous: HashSet<String>,
}

/// Of the callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Asked {
    /// With those that were rolled back.
    pub(super) calls: usize,
    /// Different keys that were asked for.
    pub(super) keys: usize,
    /// Requests that the ledger has.
    pub(super) requests: usize,
    /// Keys under which callers were told of two requests, or the ledger has two.
    pub(super) split: usize,
    /// Answers "already sent" when nothing had been accepted.
    pub(super) premature: usize,
    /// Requests about which a later call does not say what the ledger says.
    pub(super) wrong: usize,
}

/// Of one relay; "repeated" is judged by what its provider does with keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Sent {
    pub(super) requests: usize,
    pub(super) completed: usize,
    pub(super) unknown: usize,
    /// Requests that the provider has accepted.
    pub(super) accepted: usize,
    /// Requests that it has accepted more than once.
    pub(super) repeated: usize,
    /// Repeated ones that are not listed as ambiguous.
    pub(super) unexplained: usize,
    /// Requests that came with two bodies.
    pub(super) two_bodies: usize,
    /// Requests that it has not accepted.
    pub(super) missing: usize,
    /// Missing ones that are not listed as unknown.
    pub(super) unlisted: usize,
    /// Requests of which the sender could not know, at least once, what had become of them.
    pub(super) in_doubt: usize,
    /// Those in doubt that are not listed as ambiguous.
    pub(super) hidden: usize,
    /// Messages that belong to no request.
    pub(super) phantom: usize,
    /// Requests that are neither completed nor unknown.
    pub(super) open: usize,
}

impl Ledger {
    /// `told`: by calls that stayed; `later`: by a call for each key after everything; `messages`: of both
    /// providers.
    pub(super) fn asked(&self, calls: usize, told: &[Told], later: &[Told], messages: &[&Message]) -> Asked {
        let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for one in told {
            ids.entry(&one.about).or_default().insert(&one.id);
        }
        let keys = ids.len();
        for entry in &self.entries {
            ids.entry(&entry.about).or_default().insert(&entry.id);
        }
        let mut first: HashMap<&str, Timestamp> = HashMap::new();
        for one in messages.iter().filter(|one| one.accepted) {
            first.entry(&one.id).and_modify(|at| *at = one.at.min(*at)).or_insert(one.at);
        }
        let sent = |one: &Told| first.get(one.id.as_str()).is_some_and(|at| *at <= one.at);
        let later: HashMap<&str, &Told> = later.iter().map(|one| (one.about.as_str(), one)).collect();
        let right = |entry: &Entry| {
            later.get(entry.about.as_str()).is_some_and(|one| {
                one.id == entry.id && one.status == entry.status && one.already_sent == (entry.status == "completed")
            })
        };
        Asked {
            calls,
            keys,
            requests: self.entries.len(),
            split: ids.values().filter(|ids| ids.len() > 1).count(),
            premature: told.iter().filter(|one| one.already_sent && !sent(one)).count(),
            wrong: self.entries.iter().filter(|entry| !right(entry)).count(),
        }
    }

    /// What this relay's provider has, against the relay's requests.
    pub(super) fn sent(&self, relay: &str, messages: &[Message]) -> Sent {
        let mut sent = Sent::default();
        let mut by_id: HashMap<&str, Vec<&Message>> = HashMap::new();
        for one in messages {
            by_id.entry(&one.id).or_default().push(one);
        }
        for entry in self.entries.iter().filter(|entry| entry.relay == relay) {
            let of_it = by_id.remove(entry.id.as_str()).unwrap_or_default();
            let accepted = of_it.iter().filter(|one| one.accepted).count();
            let bodies: HashSet<&str> = of_it.iter().map(|one| one.body.as_str()).collect();
            let (unknown, ambiguous) = (self.unknown.contains(&entry.id), self.ambiguous.contains(&entry.id));
            let in_doubt = of_it.iter().any(|one| !one.answered);
            sent.requests += 1;
            sent.completed += usize::from(entry.status == "completed");
            sent.unknown += usize::from(unknown);
            sent.accepted += usize::from(accepted > 0);
            sent.repeated += usize::from(accepted > 1);
            sent.unexplained += usize::from(accepted > 1 && !ambiguous);
            sent.two_bodies += usize::from(bodies.len() > 1);
            sent.missing += usize::from(accepted == 0);
            sent.unlisted += usize::from(accepted == 0 && !unknown);
            sent.in_doubt += usize::from(in_doubt);
            sent.hidden += usize::from(in_doubt && !ambiguous);
            sent.open += usize::from(!matches!(entry.status.as_str(), "completed" | "unknown"));
        }
        sent.phantom = by_id.values().map(Vec::len).sum();
        sent
    }
}

impl Sent {
    fn is_sound(&self) -> bool {
        self.unexplained + self.two_bodies + self.unlisted + self.hidden + self.phantom + self.open == 0
    }
}

/// Of everything together. Mails: under one key with one body, none missing. Texts: none twice, what is missing is listed.
pub(super) fn verdict(asked: &Asked, mails: &Sent, texts: &Sent) -> Verdict {
    if mails.requests == 0 || texts.requests == 0 {
        return Verdict::Undecided;
    }
    let once = asked.requests == asked.keys && asked.split + asked.premature + asked.wrong == 0;
    let sound = mails.is_sound() && texts.is_sound();
    if once && sound && mails.missing + texts.repeated == 0 { Verdict::Pass } else { Verdict::Fail }
}

#[cfg(test)]
mod tests;
