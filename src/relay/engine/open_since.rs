//! Since when transactions are open: below that instant no open or later transaction writes under a weaker rule.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::database::Error;
use crate::position::Timestamp;
use crate::relay::engine::Engine;
use crate::source::shape::Shape;

/// The transactions of the database are looked at for this no more often.
const EVERY: Duration = Duration::from_secs(1);

/// From when on transactions were open before the catalog was last found to be as the relays know it.
#[derive(Debug)]
pub(in crate::relay) struct OpenSince(AtomicI64);

impl Default for OpenSince {
    fn default() -> Self {
        Self(AtomicI64::new(Timestamp::NEG_INFINITY.pg_micros()))
    }
}

impl OpenSince {
    /// The instant; none while it is not known.
    pub(in crate::relay) fn get(&self) -> Option<Timestamp> {
        Some(Timestamp::from_pg_micros(self.0.load(Relaxed))).filter(|at| at.is_finite())
    }

    /// The catalog, read after this was found out, is as it was.
    pub(in crate::relay) fn set(&self, at: Option<Timestamp>) {
        self.0.store(at.unwrap_or(Timestamp::NEG_INFINITY).pg_micros(), Relaxed);
    }
}

impl Engine {
    /// No transaction of this database that is open now, or begins later, has an earlier start. None where that cannot be
    /// known: the starts of other roles' transactions need `pg_read_all_stats`. At most a second old, which makes it earlier.
    pub(in crate::relay) async fn open_since(&self, shape: &Shape) -> Result<Option<Timestamp>, Error> {
        let mut last = self.last_open_since.lock().await;
        if let Some((asked, known)) = *last
            && asked.elapsed() < EVERY
        {
            return Ok(known);
        }
        let asked = Instant::now();
        let session = self.probe.session().await?;
        let readable = session.prepare_cached("SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')").await?;
        let readable: bool = session.query_one(&readable, &[]).await?.try_get(0)?;
        let at = if readable {
            let scan = self.watcher.scan(&shape.of_all_transactions()).await?;
            scan.server.same_as(&session.server)?;
            Some(scan.horizon.at)
        } else {
            None
        };
        let known = at.filter(|at| at.is_finite());
        *last = Some((asked, known));
        Ok(known)
    }
}
