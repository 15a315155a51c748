//! What `run` does beside its relays: a pass from time to time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Config, Found, Pass, pass};
use crate::database::{Error, Session, Sessions, sqlstate};
use crate::relay;
use crate::relay::engine::Engine;

/// Runs until the engine stops.
pub async fn run(engine: Arc<Engine>, sessions: Sessions, config: Config, relays: Vec<relay::Config>) {
    while !engine.stop.is_cancelled() {
        let begun = Instant::now();
        match once(&engine, &sessions, &config, &relays).await {
            Ok(found) => tell(&found, begun.elapsed()),
            Err(error) => {
                let hint = sqlstate::meaning(&error).hint;
                tracing::warn!(%error, hint, again_in = ?config.every, "retention could not go through");
            }
        }
        // Replicas that were started at once do not look at once for ever.
        let pause = config.every.mul_f64(0.9 + fastrand::f64() / 5.0);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = engine.stop.cancelled() => {}
        }
    }
}

async fn once(
    engine: &Engine,
    sessions: &Sessions,
    config: &Config,
    relays: &[relay::Config],
) -> Result<Vec<Found>, Error> {
    let session: Session = sessions.open().await?;
    pass::patient(&session).await?;
    match Pass::begin(session, config, relays, engine.stop.clone()).await? {
        Some(pass) => pass::prune(&pass).await,
        None => {
            tracing::debug!("somebody else prunes");
            Ok(Vec::new())
        }
    }
}

fn tell(found: &[Found], took: Duration) {
    for found in found {
        if found.rows > 0 {
            tracing::info!(what = found.what.as_str(), of = found.of, rows = found.rows, ?took, "pruned");
        }
        for kept in &found.kept {
            tracing::warn!(what = found.what.as_str(), of = found.of, held_by = kept.held_by, "not pruned");
        }
    }
}
