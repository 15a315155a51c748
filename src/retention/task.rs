//! What `run` does beside its relays: a pass from time to time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Config, OldRecords, Pass, pass};
use crate::database::{Error, Session, Sessions, sqlstate};
use crate::relay;
use crate::relay::engine::Engine;

/// Runs until the engine stops; a statement that is under way then ends with the grace period at the latest.
pub async fn run(engine: Arc<Engine>, sessions: Sessions, config: Config, relays: Vec<relay::Config>) {
    while !engine.stop.is_cancelled() {
        if let Err(error) = once(&engine, &sessions, &config, &relays).await {
            let hint = sqlstate::meaning(&error).hint;
            tracing::warn!(%error, hint, again_in = ?config.every, "retention could not go through");
        }
        // Replicas that were started at once do not look at once indefinitely.
        let pause = config.every.mul_f64(0.9 + fastrand::f64() / 5.0);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = engine.stop.cancelled() => {}
        }
    }
}

async fn once(engine: &Engine, sessions: &Sessions, config: &Config, relays: &[relay::Config]) -> Result<(), Error> {
    let begun = Instant::now();
    let session: Session = sessions.open().await?;
    pass::patient(&session).await?;
    let Some(pass) = Pass::begin(session, config, relays, engine.stop.clone()).await? else {
        tracing::debug!("prune skipped: already running elsewhere");
        return Ok(());
    };
    let ended = tokio::select! {
        biased;
        ended = pass::prune(&pass) => ended,
        () = engine.cut.cancelled() => {
            tracing::warn!("retention was cut at the end of the grace period: a statement was under way, and may take effect or not");
            Ok(())
        }
    };
    // Also when it failed: what is gone is gone.
    tell(&pass.done(), begun.elapsed());
    ended
}

fn tell(found: &[OldRecords], took: Duration) {
    for found in found {
        if found.rows > 0 {
            tracing::info!(what = found.what.as_str(), of = found.of, rows = found.rows, ?took, "pruned");
        }
        for kept in &found.kept {
            tracing::warn!(what = found.what.as_str(), of = found.of, held_by = kept.held_by, "not pruned");
        }
    }
}
