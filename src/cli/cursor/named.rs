//! Which cursors a name means: one of its own, or all shards of a relay.

use super::unknown;
use crate::config::Config;
use crate::cursor::control;
use crate::database::Session;

/// The cursors of this database that the name means.
pub(super) async fn there(session: &Session, name: &str) -> anyhow::Result<Vec<String>> {
    let all = control::list(session).await?;
    if all.iter().any(|cursor| cursor.name == name) {
        return Ok(vec![name.to_owned()]);
    }
    let shards: Vec<String> = all.into_iter().filter(|cursor| cursor.relay == name).map(|cursor| cursor.name).collect();
    if shards.is_empty() { Err(unknown(name)) } else { Ok(shards) }
}

/// The cursors that the configuration has for the name; the name itself when it has none.
pub(super) fn configured(config: &Config, name: &str) -> Vec<String> {
    let cursors: Vec<String> =
        config.relays.iter().filter(|relay| relay.relay == name).map(|relay| relay.name.clone()).collect();
    if cursors.is_empty() { vec![name.to_owned()] } else { cursors }
}

/// Refuses the name of a relay with shards where one cursor must be meant.
pub(super) fn one(config: &Config, name: &str) -> anyhow::Result<()> {
    let cursors = configured(config, name);
    anyhow::ensure!(
        cursors.len() == 1,
        "relay {name} has {} cursors: name one of {}",
        cursors.len(),
        cursors.join(", ")
    );
    Ok(())
}
