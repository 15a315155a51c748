//! What stands against a handover: a former set that is not whole, is another relay's, or has something left to decide.

use serde_json::Value;

use super::Handover;
use crate::cursor::reshard::Old;
use crate::source::shard::Shard;

impl Handover<'_> {
    /// Whether there is nothing to do.
    pub(super) fn judge(&self, olds: &[Old]) -> anyhow::Result<bool> {
        let relay = &self.relays[0].relay;
        let new: Value = serde_json::from_str(&self.identity)?;
        let Some(one) = olds.first() else {
            anyhow::bail!(
                "relay {relay} has no cursors yet: its first run makes them, and nothing is to be handed over"
            );
        };
        if olds.iter().all(|old| set(&old.identity) == set(&new)) {
            return Ok(true);
        }
        let mut names: Vec<String> = match shard(&one.identity) {
            None => vec![relay.clone()],
            Some(shard) => (0..shard.of).map(|number| format!("{relay}#{number}")).collect(),
        };
        names.sort_unstable();
        let mut there: Vec<&String> = olds.iter().map(|old| &old.name).collect();
        there.sort_unstable();
        anyhow::ensure!(
            names.iter().eq(there.iter().copied()) && olds.iter().all(|old| set(&old.identity) == set(&one.identity)),
            "relay {relay} has not one whole set of cursors, but {there:?}: run replicas of the former configuration until all \
             of its cursors are there"
        );
        for old in olds {
            let name = &old.name;
            anyhow::ensure!(
                ["table", "sink", "target", "system"].iter().all(|word| old.identity.get(word) == new.get(word)),
                "cursor {name} belongs to {}, and the relay is configured for {new}: change one thing at a time",
                old.identity
            );
            anyhow::ensure!(
                !old.paused,
                "cursor {name} is paused: resume it, because it must read what is before the others"
            );
            anyhow::ensure!(
                old.decision.is_none(),
                "cursor {name} is halted with {}, which an operator must decide about: see `outbox-relay cursor why {name}`, then run \
                 `outbox-relay cursor resume {name}`",
                old.decision.as_deref().unwrap_or_default()
            );
            anyhow::ensure!(
                old.letters == 0,
                "cursor {name} has {} open dead letters: redrive or discard them first (`outbox-relay dead-letter list`)",
                old.letters
            );
            anyhow::ensure!(
                old.unknown == 0,
                "cursor {name} has {} unknown outcomes: settle them first (`outbox-relay request list --unknown`)",
                old.unknown
            );
        }
        Ok(false)
    }
}

/// What tells one set of cursors from another.
fn set(identity: &Value) -> [Option<&Value>; 2] {
    [identity.get("shards"), identity.get("shard_key")]
}

/// The shards that an identity is of.
pub(super) fn shard(identity: &Value) -> Option<Shard> {
    let text = |word| identity.get(word).and_then(Value::as_str);
    Some(Shard { key: text("shard_key")?.to_owned(), of: text("shards")?.parse().ok()?, number: 0 })
}
