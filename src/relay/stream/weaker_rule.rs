//! A table whose default became the transaction's start under a relay.
//!
//! Under `writers` a position may lie above the start of a transaction that is still open: what that one writes is stamped
//! when it is written. Once the default is `now()`, the same transaction writes a row that is stamped with its start, below
//! the position, and no later reading finds it.
//!
//! So each advance records from when on transactions are open (`open_since`), as it was known before the catalog said that
//! the rule is still `writers`. A transaction that writes under the new default was open then or began later, so none of its rows is
//! stamped earlier. When the rule has become weaker, the position goes back there, in a turn of its own, and the relay halts
//! until an operator accepts that. It does not go back where a row must not be sent twice, or where the instant is not known:
//! then the halt says what may be missing.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::cursor::{Halting, LockedCursor};
use crate::database::Error;
use crate::position::Timestamp;
use crate::relay::engine::Engine;
use crate::relay::engine::report;
use crate::relay::stream::outcome::{Outcome, TurnError};
use crate::relay::stream::turn::{Turn, within};
use crate::relay::{Guarantee, Ready};
use crate::sink::{Class, Failure};
use crate::source::Rule;
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

/// The last answer of [`Engine::open_since`], and when it was asked for.
pub(in crate::relay) type LastOpenSince = Option<(Instant, Option<Timestamp>)>;

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

/// Whether a position that rests on this rule may lie above rows that the table lets come. A configuration that asks for more
/// than the column needs makes nothing weaker.
pub(in crate::relay) fn is_weaker(rests_on: Option<&str>, shape: &Shape) -> bool {
    rests_on == Some(Rule::Writers.as_str()) && shape.needs != Rule::Writers
}

impl Turn<'_> {
    /// Moves the position back where that is known and allowed, records the weaker rule, and halts.
    pub(in crate::relay) async fn weaken(&self, cursor: LockedCursor) -> Result<Outcome, TurnError> {
        let position = cursor.position.clone();
        let since = cursor.rests_on.open_since.filter(|_| self.ready.config.guarantee == Guarantee::AtLeastOnce);
        let back = since.filter(|since| position.as_ref().is_some_and(|position| position.created_at > *since));
        let place = position.map_or_else(|| "the beginning".to_owned(), |position| position.to_string());
        let failure = failure(self.ready, since, back, &place);
        // With the halt in the same transaction: no turn goes on under the weaker rule before an operator has seen it.
        let halt = Halting { report: report::error(&failure, None), fingerprint: &self.ready.fingerprint };
        let rule = self.ready.shape.rule.as_str();
        within(self.engine, cursor.weaken(rule, back, &halt, &self.engine.replica)).await?;
        report::halted(self.ready, &failure, None);
        Ok(Outcome::Halted)
    }
}

fn failure(ready: &Ready, since: Option<Timestamp>, back: Option<Timestamp>, place: &str) -> Failure {
    let (name, shape) = (&ready.config.name, &ready.shape);
    let changed = report::changed(shape, Rule::Writers);
    let restore = report::restore(name);
    let (message, hint) = match (since, back) {
        (_, Some(back)) => (
            format!(
                "{changed}. A transaction that was open before the change can still write below the position {place}, so the \
                 position is {back} now"
            ),
            format!("{restore} Rows since {back} are sent again."),
        ),
        (Some(_), None) => {
            (format!("{changed}. No transaction that was open then began before the position {place}"), restore)
        }
        (None, None) => (
            format!(
                "{changed}. A transaction that was open before the change can write below the position {place}, where it is \
                 not read"
            ),
            format!(
                "Look for such rows with created_at below that position. To read them, and all since, again: `outbox-relay \
                 cursor seek {name} --at INSTANT`. Then accept the new rule: `outbox-relay cursor resume {name}`."
            ),
        ),
    };
    Failure::of(Class::Fatal, "horizon_rule_changed", message, hint)
}
