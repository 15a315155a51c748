//! Runs all relays of a process, grouped by source.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::Config;
use super::engine::Engine;
use super::group::Group;
use crate::pace::Backoff;

/// Runs the relays until the engine stops and their running turns have ended. A group that panics is started again.
pub async fn run(engine: Arc<Engine>, relays: Vec<Config>) {
    let mut groups: HashMap<_, Vec<Config>> = HashMap::new();
    for relay in relays {
        groups.entry(relay.source.clone()).or_default().push(relay);
    }
    let mut tasks = JoinSet::new();
    for (source, relays) in groups {
        let engine = Arc::clone(&engine);
        tasks.spawn(async move {
            let mut backoff = Backoff::new();
            while !engine.stop.is_cancelled() {
                let group = Group::new(Arc::clone(&engine), source.clone(), relays.clone());
                if let Err(error) = tokio::spawn(group.run()).await {
                    let pause = backoff.failed(fastrand::f64());
                    tracing::error!(table = %source.table(), %error, ?pause, "relay group panicked: it is started again");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = engine.stop.cancelled() => {}
                    }
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}
