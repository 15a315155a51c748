//! The live replicas as operators see them: what each runs, and where two of them do not agree.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

use super::{Worker, running};
use crate::cursor::replicas::{self, MISMATCH, Relay, Replica};
use crate::database::Error;
use crate::relay::engine::not_ready::RENAMED;

/// The live replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Those that have written their rows, the longest running first.
    pub replicas: Vec<Replica>,
    /// Names of those that have sessions and no row: of an older version, or only just started.
    pub unwritten: Vec<String>,
}

/// Reads the live replicas.
///
/// # Errors
/// The database's.
pub async fn fleet(client: &Client) -> Result<Fleet, Error> {
    let mut replicas = replicas::list(client, false).await?;
    replicas.retain(|replica| replica.live);
    let mut unwritten = running(client).await?;
    unwritten.retain(|name| !replicas.iter().any(|replica| replica.id == *name));
    Ok(Fleet { replicas, unwritten })
}

impl Fleet {
    /// The replicas that work on one of these relays or cursors, or may do so. One that refuses the relay because it may have been
    /// renamed has no cursor to work on.
    #[must_use]
    pub fn workers(&self, names: &[&str]) -> Vec<Worker> {
        let works = |relay: &Relay| {
            let refused = relay.refused.as_ref().is_some_and(|refused| refused.code == RENAMED);
            !refused && (names.contains(&relay.name.as_str()) || names.contains(&relay_of(&relay.name)))
        };
        // Several processes may have one id.
        let mut found: BTreeMap<&str, bool> = self.unwritten.iter().map(|name| (name.as_str(), false)).collect();
        for replica in &self.replicas {
            let reported = replica.relays.iter().any(works);
            if reported || replica.unreadable.is_some() {
                *found.entry(&replica.id).or_default() |= reported;
            }
        }
        found.into_iter().map(|(replica, reported)| Worker { replica: replica.to_owned(), reported }).collect()
    }

    /// The names of those, of all that run, that have this cursor's relay or may have it; of all, where none does.
    #[must_use]
    pub fn may_take(&self, cursor: &str, running: Vec<String>) -> Vec<String> {
        let workers: Vec<String> = self.workers(&[cursor]).into_iter().map(|worker| worker.replica).collect();
        if workers.is_empty() { running } else { workers }
    }

    /// Whether no live replica has a cursor in its configuration; false where that is not known of one.
    #[must_use]
    pub fn lacks(&self, cursor: &str) -> bool {
        let all_known = self.unwritten.is_empty() && self.replicas.iter().all(|replica| replica.unreadable.is_none());
        all_known && !self.entries().any(|(_, relay)| relay.name == cursor)
    }

    /// Whether a live replica refuses a cursor's relay and another runs it. The row of one that has just found out what is wrong
    /// may not say so yet: then no replica is known to refuse it.
    #[must_use]
    pub fn differs_on(&self, cursor: &str) -> bool {
        let of_cursor = || self.entries().filter(|(_, relay)| relay.name == cursor);
        of_cursor().any(|(_, relay)| relay.refused.is_some()) && of_cursor().any(|(_, relay)| relay.refused.is_none())
    }

    /// What an operator must know of the replicas and relays, a sentence each: ids that are not unique, other configurations, and
    /// refusals.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let relays: BTreeSet<&str> = self.entries().map(|(_, relay)| relay_of(&relay.name)).collect();
        let mismatches = relays.into_iter().filter_map(|relay| self.mismatch(relay));
        let shared = self.shared_ids(|_| true).into_iter();
        shared.chain(self.unreadable()).chain(mismatches).chain(self.refusals(|_| true, None)).collect()
    }

    /// Which ids several live processes have, of those that have one of these relays.
    fn shared_ids(&self, of: impl Fn(&str) -> bool) -> Vec<String> {
        let mut processes: BTreeMap<&str, usize> = BTreeMap::new();
        for replica in self.replicas.iter().filter(|replica| replica.relays.iter().any(|relay| of(&relay.name))) {
            *processes.entry(&replica.id).or_default() += 1;
        }
        let shared = processes.into_iter().filter(|(_, count)| *count > 1);
        let said = |(id, count)| {
            format!("{count} live processes have the replica id {id}: give each a --replica-id of its own")
        };
        shared.map(said).collect()
    }

    /// The same of one cursor.
    #[must_use]
    pub fn notes_of(&self, cursor: &str) -> Vec<String> {
        self.notes_beside(cursor, None)
    }

    /// The same of one cursor, beside its last error, of this code and message: a refusal for it is not told once more in full.
    #[must_use]
    pub fn notes_beside(&self, cursor: &str, told: Option<(&str, &str)>) -> Vec<String> {
        let shared = self.shared_ids(|name| name == cursor).into_iter();
        let mismatch = self.mismatch(relay_of(cursor));
        shared.chain(self.unreadable()).chain(mismatch).chain(self.refusals(|name| name == cursor, told)).collect()
    }

    /// Those whose configuration cannot be read: they may have any relay.
    fn unreadable(&self) -> impl Iterator<Item = String> {
        self.replicas
            .iter()
            .filter(|replica| replica.unreadable.is_some())
            .map(|replica| format!("replica {} of version {}: configuration not readable", replica.id, replica.version))
    }

    /// Which replicas have which configuration, when there are several.
    fn mismatch(&self, name: &str) -> Option<String> {
        let mut configurations: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (replica, relay) in self.entries().filter(|(_, relay)| relay_of(&relay.name) == name) {
            let waits = relay.refused.as_ref().is_some_and(|refused| refused.code == MISMATCH);
            let known = configurations.entry(&relay.config_hash).or_default();
            let id = format!("{}{}", replica.id, if waits { " (waits)" } else { "" });
            if !known.contains(&id) {
                known.push(id);
            }
        }
        if configurations.len() < 2 {
            return None;
        }
        let each = configurations.iter().map(|(hash, replicas)| format!("{hash} on {}", replicas.join(", ")));
        let each: Vec<_> = each.collect();
        Some(format!("relay {name} has {} configurations: {}", each.len(), each.join("; ")))
    }

    /// Who refuses which relay: those that do for the same reason in one sentence. Counts and times in a reason, as a client's,
    /// make no other reason of it.
    fn refusals(&self, of: impl Fn(&str) -> bool, told: Option<(&str, &str)>) -> Vec<String> {
        let same = |text: &str| text.trim_end_matches('.').replace(|sign: char| sign.is_ascii_digit(), "");
        let mut all: BTreeMap<(&str, &str, String), (Vec<&str>, &str)> = BTreeMap::new();
        for (replica, relay) in self.entries().filter(|(_, relay)| of(&relay.name)) {
            let Some(refused) = relay.refused.as_ref().filter(|refused| refused.code != MISMATCH) else { continue };
            let reason = (relay.name.as_str(), refused.code.as_str(), same(&refused.message));
            all.entry(reason)
                .or_insert_with(|| (Vec::new(), refused.message.trim_end_matches('.')))
                .0
                .push(&replica.id);
        }
        let sentence = |((name, code, reason), (ids, message)): ((&str, &str, String), (Vec<&str>, &str))| {
            let who = match ids.as_slice() {
                [id] => format!("replica {id} refuses {name}"),
                ids if ids.len() == self.replicas.len() => {
                    format!("all {} replicas refuse {name} ({})", ids.len(), ids.join(", "))
                }
                ids => format!("{} replicas refuse {name} ({})", ids.len(), ids.join(", ")),
            };
            match told.filter(|(told, message)| *told == code && same(message) == reason) {
                Some(_) => format!("{who}: {code}, its last error"),
                None => format!("{who}: {code}: {message}"),
            }
        };
        all.into_iter().map(sentence).collect()
    }

    fn entries(&self) -> impl Iterator<Item = (&Replica, &Relay)> {
        self.replicas.iter().flat_map(|replica| replica.relays.iter().map(move |relay| (replica, relay)))
    }
}

/// A replica as a JSON document has it.
#[must_use]
pub fn document(replica: &Replica) -> serde_json::Value {
    serde_json::json!({
        "instance": replica.instance,
        "id": replica.id,
        "version": replica.version,
        "started_at": replica.started_at.to_string(),
        "seen_at": replica.seen_at.to_string(),
        "stopped_at": replica.stopped_at.map(|at| at.to_string()),
        "live": replica.live,
        "relays": replica.relays,
        "unreadable": replica.unreadable,
    })
}

/// The relay of a cursor.
#[must_use]
pub fn relay_of(cursor: &str) -> &str {
    cursor.split_once('#').map_or(cursor, |(relay, _)| relay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::replicas::RefusedRelay;
    use crate::position::Timestamp;

    fn replica(id: &str, hash: &str, refused: Option<(&str, &str)>) -> Replica {
        let at = Timestamp::from_pg_micros(0);
        let refused =
            refused.map(|(code, message)| RefusedRelay { code: code.to_owned(), message: message.to_owned() });
        let relay =
            |name: &str| Relay { name: name.to_owned(), config_hash: hash.to_owned(), refused: refused.clone() };
        Replica {
            instance: id.to_owned(),
            id: id.to_owned(),
            version: "0".to_owned(),
            started_at: at,
            seen_at: at,
            stopped_at: None,
            live: true,
            relays: vec![relay("events#0"), relay("events#1")],
            unreadable: None,
        }
    }

    #[test]
    fn notes_name_other_configurations_and_refusals() {
        let agreed = Fleet { replicas: vec![replica("a", "1", None), replica("b", "1", None)], unwritten: Vec::new() };
        assert!(agreed.notes().is_empty());
        let waits = replica("c", "2", Some((MISMATCH, "waits")));
        let stray = replica("d", "3", Some(("identity_changed", "the cursor belongs to another.")));
        let fleet = Fleet { replicas: [agreed.replicas, vec![waits, stray]].concat(), unwritten: Vec::new() };
        let mismatch = "relay events has 3 configurations: 1 on a, b; 2 on c (waits); 3 on d";
        let refusal = "replica d refuses events#1: identity_changed: the cursor belongs to another";
        assert_eq!(fleet.notes_of("events#1"), [mismatch, refusal]);
        assert_eq!(fleet.notes().len(), 3, "{:?}", fleet.notes());
        assert!(fleet.notes_of("mails").is_empty());
    }

    #[test]
    fn replicas_that_refuse_for_the_same_reason_are_told_once() {
        let away = |id, ms| replica(id, "1", Some(("kafka_away", &format!("refused after {ms}ms."))));
        let mut fleet = Fleet { replicas: vec![away("a", 0), away("b", 17), away("c", 3)], unwritten: Vec::new() };
        let all = "all 3 replicas refuse events#1 (a, b, c)";
        assert_eq!(fleet.notes_of("events#1"), [format!("{all}: kafka_away: refused after 0ms")]);
        let told = Some(("kafka_away", "refused after 1ms"));
        assert_eq!(fleet.notes_beside("events#1", told), [format!("{all}: kafka_away, its last error")]);
        fleet.replicas.push(replica("d", "1", None));
        assert_eq!(
            fleet.notes_beside("events#1", told),
            ["3 replicas refuse events#1 (a, b, c): kafka_away, its last error"]
        );
        let other = Some(("kafka_away", "no such topic"));
        assert_eq!(fleet.notes_beside("events#1", other).len(), 1);
        assert!(fleet.notes_beside("events#1", other)[0].ends_with("refused after 0ms"));
    }

    #[test]
    fn cursor_is_lacking_only_when_all_are_known() {
        let mut fleet = Fleet { replicas: vec![replica("a", "1", None)], unwritten: Vec::new() };
        assert!(!fleet.lacks("events#0") && fleet.lacks("events"));
        fleet.unwritten.push("old".to_owned());
        assert!(!fleet.lacks("events"));
        fleet.unwritten.clear();
        fleet.replicas.push(Replica {
            relays: Vec::new(),
            unreadable: Some("later".to_owned()),
            ..replica("b", "1", None)
        });
        assert!(!fleet.lacks("events"));
        assert_eq!(fleet.notes_of("events"), ["replica b of version 0: configuration not readable"]);
        assert!(Fleet::default().lacks("events#0"));
    }
}
