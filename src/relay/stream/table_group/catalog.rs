//! What a group knows of its table, and what follows when that is another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Group;
use crate::cursor;
use crate::database::{Error, Session};
use crate::position::Timestamp;
use crate::relay::engine::intervals::RECHECK;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::prepare;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::report;
use crate::relay::stream::shards::{self, Shards};
use crate::relay::stream::weaker_rule;
use crate::source::Rule;
use crate::source::shape::Shape;

/// A table's shape, and from when on transactions were open before it was read.
type Read = (Option<Timestamp>, Result<Shape, Unready>);

impl Group {
    /// Reads the table's shape again unless it was read as lately as `known`; halts the relays whose rule has changed under
    /// them.
    pub(super) async fn catalogue(&mut self, known: Duration) -> Result<(), Error> {
        if self.shape.is_some() && self.shape_read.is_some_and(|read| read.elapsed() < known) {
            return Ok(());
        }
        if self.shape.is_none() && self.shape_read.is_some_and(|read| read.elapsed() < RECHECK) {
            return Ok(());
        }
        self.shape_read = Some(Instant::now());
        let session = self.engine.probe.session().await?;
        let (open_since, shape) = self.read(&session).await?;
        // The server answers, whatever it says of the table.
        match shape {
            Ok(shape) => {
                if let Some(before) = self.shape.as_ref().filter(|before| ***before != shape) {
                    // Another relation under the name is another matter: a turn halts at it, and its rule is not compared. So
                    // does a turn that finds its cursor on a stronger rule.
                    if shape.weakens(before) && before.root == shape.root {
                        let names: Vec<&str> = self.members.iter().map(|member| member.config.name.as_str()).collect();
                        let standings = cursor::standings(&session, &names).await?;
                        let by_turn = |ready: &&Arc<PreparedStream>| {
                            let own = standings.iter().find(|standing| standing.name == ready.config.name);
                            own.is_some_and(|standing| weaker_rule::is_weaker(standing.rule.as_deref(), &shape))
                        };
                        let ready = self.members.iter().filter_map(|member| member.ready.as_ref());
                        let ready = ready.filter(|ready| !by_turn(ready));
                        report::rule_changed(&session, ready, before, &shape).await?;
                    }
                }
                if self.shape.as_deref() != Some(&shape) {
                    self.open_since = Arc::default();
                    self.shape = Some(Arc::new(shape));
                    self.reshape();
                }
                self.open_since.set(open_since);
            }
            Err(unready) => {
                self.shape = None;
                for member in &mut self.members {
                    // A worker that is busy must not go on: with this the relay gives up its claim.
                    member.ready.iter().for_each(|ready| ready.supersede());
                    member.ready = None;
                    member.not_ready(&self.engine, &unready).await;
                }
            }
        }
        Ok(())
    }

    /// The catalog, and before it the transactions: one that writes under a default that it does not show yet was open then, or
    /// began later. A shape that is new is read twice, because the first reading tells only afterwards that this is needed.
    async fn read(&self, session: &Session) -> Result<Read, Error> {
        let mut known = self.shape.as_deref().cloned();
        for _ in 0..2 {
            let open_since = match &known {
                Some(shape) if shape.rule == Rule::Writers => self.open_since(shape).await,
                Some(_) | None => None,
            };
            match prepare::shape(session, &self.source).await? {
                Ok(shape) if known.as_ref() == Some(&shape) => return Ok((open_since, Ok(shape))),
                Ok(shape) if shape.rule == Rule::Writers => known = Some(shape),
                shape => return Ok((None, shape)),
            }
        }
        // It changes from reading to reading.
        Ok((None, prepare::shape(session, &self.source).await?))
    }

    /// What cannot be found out now is not known: a default that changes before the next time halts the relay all the same.
    async fn open_since(&self, shape: &Shape) -> Option<Timestamp> {
        match self.engine.open_since(shape).await {
            Ok(known) => known,
            Err(error) => {
                tracing::debug!(%error, "starts of open transactions are not known");
                None
            }
        }
    }

    /// Gives the relays that are ready the new shape; those that it does not fit, or whose shard key is another, are made ready
    /// again.
    fn reshape(&mut self) {
        let Some(shape) = &self.shape else { return };
        if let Some(sleeper) = &self.sleeper {
            sleeper.waits_for(shape.root);
        }
        // Another key, or another value in it, may have moved rows from shard to shard.
        self.shards = Shards::default();
        for member in &mut self.members {
            if let Some(ready) = &member.ready {
                ready.supersede();
                let fits = ready.fits(shape) && shards::keeps_key(ready, shape);
                member.ready = fits.then(|| Arc::new(ready.with_shape(shape)));
            }
            member.quiet = None;
            (member.unchecked, member.checking) = (true, false);
        }
    }
}
