//! Hands a relay's rows over to another set of cursors, while writers write and replicas with the former set run.
//!
//! Promise: every row is read by exactly one of the two sets, and of each key the former one's rows come first. A writer
//! that writes nothing holds the table's horizon back, so that all cursors of the former set come to stand below one
//! instant; with all of them locked, that instant is proven to be safe and behind none of them is a row before it; there the
//! new set begins, in the transaction that ends the former.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor::reshard::{Old, lock, old};
use crate::database::{PATIENT, Session, Sessions};
use crate::position::{Position, Timestamp};
use crate::relay::Config;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::prepare;
use crate::source::shape::Shape;
use crate::source::shard::Shard;
use crate::source::watcher::Watcher;
use crate::source::{self, Rule, span, sweep};
use judge::shard;

mod exchange;
mod judge;

const LOOK: Duration = Duration::from_millis(50);
/// How long the horizon is held at a time, and how long it may go on in between: replicas look several times a second.
const HOLDS: Duration = Duration::from_secs(5);
const RESTS: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resharded {
    /// The relay's cursors are those that it is configured for.
    Already,
    /// It was handed over.
    Done {
        /// The new set begins here; `None` is before every row.
        at: Option<Position>,
        /// So many slices of the audit ended before their last comparison: rows that committed below their ends in the last hour are not
        /// looked for any more.
        slices: i64,
    },
}

/// What became of the former set while the horizon was held.
enum Settled {
    /// Somebody else has handed over.
    Already,
    /// It stands below one instant, and is locked.
    Locked(Vec<Old>),
    /// This one has something to read before another's position.
    Behind(String),
}

/// What became of the exchange of the two sets.
enum Exchange {
    /// It is committed.
    Done(Resharded),
    /// This cursor has something to do that it had not when it was locked; nothing has changed.
    Behind(String),
}

/// A relay's new set, and what the table looks like.
struct Handover<'a> {
    relays: &'a [Config],
    identity: String,
    shape: Arc<Shape>,
    watcher: &'a Watcher,
    until: Instant,
}

/// Hands over to the cursors of these relays, which are the shards of one, or the one that has none. What is read of the
/// table is read in `session`; all that is opened beside it must be on its server.
///
/// # Errors
/// What stands against it, or that it could not be done in time; nothing has changed then.
pub async fn reshard(
    session: &Session,
    sessions: &Sessions,
    watcher: &Watcher,
    relays: &[Config],
    patience: Duration,
    by: &str,
) -> anyhow::Result<Resharded> {
    let Some(first) = relays.first() else { return Ok(Resharded::Already) };
    let shape = match prepare::shape(session, &first.source).await? {
        Ok(shape) => Arc::new(shape.waiting_for_all()),
        Err(Unready::Wrong { message, hint, .. }) => anyhow::bail!("{message}. {hint}"),
        Err(Unready::Waiting) => anyhow::bail!("the table cannot be read yet: try again"),
    };
    anyhow::ensure!(
        shape.rule != Rule::Window,
        "under horizon = \"window\" it is not known which rows are safe to pass"
    );
    if let Err(Unready::Wrong { message, hint, .. }) = crate::relay::setup::shards::readable(session, first).await? {
        anyhow::bail!("{message}. {hint}");
    }
    let identity = prepare::identity(session, first).await?;
    let handover = Handover { relays, identity, shape, watcher, until: Instant::now() + patience };
    let olds = old(session, &first.relay).await?;
    if handover.judge(&olds)? {
        return Ok(Resharded::Already);
    }
    let barrier = sessions.open().await?;
    let holder = sessions.open().await?;
    for other in [&barrier, &holder] {
        session.server.same_as(&other.server)?;
        other.execute(PATIENT, &[]).await?;
    }
    let tries = handover.tries(session, &barrier, &holder, by);
    tokio::time::timeout(patience * 2, tries).await.map_err(|_| {
        anyhow::anyhow!("not done within {patience:?}; run it again, which says whether it was done after all")
    })?
}

impl Handover<'_> {
    /// Holds the horizon back until it is done, and lets it go on from time to time: the replica that knew most of who is
    /// writing may have ended, and the others know less for as long as it is held.
    async fn tries(
        &self,
        session: &Session,
        barrier: &Session,
        holder: &Session,
        by: &str,
    ) -> anyhow::Result<Resharded> {
        let name = self.shape.config.table.quoted();
        loop {
            barrier.batch_execute("BEGIN").await?;
            // The writer that writes nothing; on a partitioned table the lock of the root holds the horizon of all.
            barrier.batch_execute(&format!("LOCK TABLE ONLY {name} IN ROW EXCLUSIVE MODE")).await?;
            let behind = match self.settles(session, holder).await? {
                Settled::Already => return Ok(Resharded::Already),
                Settled::Locked(olds) => match self.exchange(holder, barrier, &olds, by).await? {
                    Exchange::Done(done) => return Ok(done),
                    Exchange::Behind(name) => {
                        holder.batch_execute("ROLLBACK").await?;
                        name
                    }
                },
                Settled::Behind(name) => {
                    barrier.batch_execute("ROLLBACK").await?;
                    name
                }
            };
            anyhow::ensure!(
                Instant::now() < self.until,
                "cursor {behind} has not read what lies before the others' positions, or has rows that came late or are redriven to \
                 send: is a replica with the former configuration running, and is it well (`outbox-relay cursor why {behind}`)?{} \
                 Nothing has changed",
                self.hurried()
            );
            tokio::time::sleep(RESTS).await;
        }
    }

    /// Waits, while the horizon is held, until no cursor has a row to read that lies before where another stands, and has
    /// locked them then.
    async fn settles(&self, session: &Session, holder: &Session) -> anyhow::Result<Settled> {
        // Its own transaction must not be one that replicas do not wait for any longer.
        let holds = self.max_hold().map_or(HOLDS, |longest| HOLDS.min(longest / 2));
        let until = (Instant::now() + holds).min(self.until);
        let relay = &self.relays[0].relay;
        loop {
            // From the first look on, so that later ones know who has come since.
            self.watcher.scan(&self.shape).await?.server.same_as(&session.server)?;
            let olds = old(session, relay).await?;
            if self.judge(&olds)? {
                return Ok(Settled::Already);
            }
            let mut behind = self.behind(session, &olds).await?;
            if behind.is_none() {
                holder.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
                lock(holder, relay).await?;
                let olds = old(holder, relay).await?;
                if self.judge(&olds)? {
                    return Ok(Settled::Already);
                }
                behind = self.behind(holder, &olds).await?;
                if behind.is_none() {
                    return Ok(Settled::Locked(olds));
                }
                // One has moved on before it was locked; the horizon is held, so that soon none can.
                holder.batch_execute("ROLLBACK").await?;
            }
            if let Some(behind) = behind.filter(|_| Instant::now() >= until) {
                return Ok(Settled::Behind(behind));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A cursor that has something to do before where the new set would begin.
    async fn behind(&self, session: &Session, olds: &[Old]) -> anyhow::Result<Option<String>> {
        let begins = begins(olds);
        for old in olds {
            if old.waits {
                return Ok(Some(old.name.clone()));
            }
            let shape = self.shape.for_shard(shard_of(old).as_ref());
            if old.is_swept() && sweep::has_late_rows(session, &shape, &old.name).await? {
                return Ok(Some(old.name.clone()));
            }
            let next = span::next(session, &shape, old.position.as_ref()).await?;
            if next.is_some_and(|next| begins.is_some_and(|begins| next.created_at < begins)) {
                return Ok(Some(old.name.clone()));
            }
        }
        Ok(None)
    }

    /// Why there may have been too little time for that.
    fn hurried(&self) -> &'static str {
        match self.max_hold() {
            Some(longest) if longest / 2 < HOLDS => {
                " Replicas wait for this command for half of max_hold at a time: a longer one, for as long as this takes, may help."
            }
            Some(_) | None => "",
        }
    }

    fn max_hold(&self) -> Option<Duration> {
        match &self.relays[0].source {
            source::Config::Stream(stream) => stream.max_hold,
            _ => None,
        }
    }
}

/// Right behind the last row that some cursor has read.
fn begins(olds: &[Old]) -> Option<Timestamp> {
    let furthest = olds.iter().filter_map(|old| old.position.as_ref()).map(|position| position.created_at).max();
    furthest.map(|at| at.plus(Duration::from_micros(1)))
}

/// The shard that a cursor reads.
fn shard_of(old: &Old) -> Option<Shard> {
    let number = old.name.rsplit_once('#')?.1.parse().ok()?;
    Some(Shard { number, ..shard(&old.identity)? })
}
