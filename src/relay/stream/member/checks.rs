//! Checks of a relay: when they run, and what follows from what they find.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::Member;
use crate::database::Error;
use crate::relay::engine::Engine;
use crate::relay::engine::intervals::RECHECK;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::begin::FirstLook;
use crate::relay::setup::prepare;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::shards;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// How long the checks may take, some of them of servers that hang.
const CHECKS: Duration = Duration::from_secs(60);

/// What checks find.
pub(in crate::relay) type Prepared = Result<Result<PreparedStream, Unready>, Error>;

impl Member {
    /// Its checks, to be run when they are due; what they find comes back to [`Self::checked`].
    pub(in crate::relay) fn checks(
        &mut self,
        engine: &Arc<Engine>,
        shape: &Arc<Shape>,
        sighting: &Sighting,
    ) -> Option<impl Future<Output = Prepared> + Send + 'static> {
        if self.ready.is_some() || self.preparing || self.busy || self.not_before > Instant::now() {
            return None;
        }
        self.preparing = true;
        let (engine, config) = (Arc::clone(engine), self.config.clone());
        let shape = Arc::clone(shape);
        let first = self.first_look.get_or_insert_with(|| FirstLook::new(sighting, &shape)).clone();
        let first = first.after(self.seen.clone());
        Some(async move {
            if let Err(unready) = engine.registry.admitted(&config, &engine.stop).await {
                return Ok(Err(unready));
            }
            let own_client = config.sink.of_kind().goes_to_cluster();
            let _permit = if own_client { engine.check().await } else { None };
            let checks = prepare::ready(&engine, &config, &shape, &first);
            tokio::time::timeout(CHECKS, checks).await.unwrap_or(Err(Error::Timeout(CHECKS)))
        })
    }

    /// Its checks have ended; the next look takes what they found.
    pub(in crate::relay) fn checked(&mut self, prepared: Result<Prepared, JoinError>) {
        self.preparing = false;
        self.prepared = Some(prepared);
    }

    /// Takes what its checks found.
    pub(in crate::relay) async fn prepare(&mut self, engine: &Arc<Engine>, shape: &Arc<Shape>) {
        let Some(prepared) = self.prepared.take() else { return };
        let unready = match prepared {
            // The columns' types, their casts, or the shard key have changed meanwhile: it is made again.
            Ok(Ok(Ok(ready))) if !ready.fits(shape) || !shards::keeps_key(&ready, shape) => return,
            Ok(Ok(Ok(ready))) => {
                tracing::info!(cursor = self.config.name, rule = ready.shape.rule.as_str(), "relay ready");
                self.ready = Some(Arc::new(ready.with_shape(shape)));
                self.learned = Learned::new(&self.config);
                self.unchecked = true;
                self.unready = None;
                self.first_look = None;
                self.halted = false;
                engine.set_ready(&self.config.name);
                // Those that answer one by one are rarely many at a time.
                if !self.config.sink.one_by_one() {
                    engine.warm();
                }
                return;
            }
            Ok(Ok(Err(unready))) => unready,
            Ok(Err(error)) => Unready::from(&error),
            Err(error) => Unready::panicked(&error),
        };
        let pause = if matches!(unready, Unready::Waiting) { Duration::from_millis(20) } else { RECHECK };
        self.not_before = Instant::now() + pause;
        self.not_ready(engine, &unready).await;
    }

    /// Says why it cannot run.
    pub(in crate::relay) async fn not_ready(&mut self, engine: &Engine, unready: &Unready) {
        let news = self.unready.as_ref() != Some(unready);
        self.unready = Some(unready.clone());
        let first = self.first_look.clone().map(|first| first.after(self.seen.clone()));
        prepare::not_ready(engine, &self.config, unready, first.as_ref(), news).await;
    }
}
