//! What a topic still has of a range, and what the built-in outbox has: retention deletes the oldest records, and the oldest rows.

use std::sync::Arc;

use rdkafka::message::Message as _;

use super::topic::{self, Span, Watch};
use super::{Error, Problem, Subject};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::source::range::{self, Bounds};
use crate::source::shape::Shape;

/// So many records are read to find one that says how old it is.
const LOOKED_AT: i64 = 500;

/// The table whose delivered rows are pruned.
pub(super) const BUILT_IN: &str = "outbox.message";
/// A range from which retention may have removed more rows than this begins later.
pub(super) const REMOVED: i64 = 20_000;

/// How much of a range may be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Retained {
    /// Nothing.
    All,
    /// Rows up to this may be.
    After(Timestamp),
    /// Any row may be: this partition has nothing left.
    Nothing(Arc<str>, i32),
}

impl Subject {
    /// How much the topics still have of what came at or after `since`.
    pub(super) async fn retained(
        &self,
        spans: &[Span],
        since: Timestamp,
        watch: &Arc<Watch>,
    ) -> Result<Retained, Problem> {
        let cut: Vec<Span> = spans.iter().filter(|span| span.may_be_cut()).cloned().collect();
        if let Some(empty) = cut.iter().find(|span| span.low >= span.end) {
            return Ok(Retained::Nothing(Arc::clone(&empty.topic), empty.partition));
        }
        let heads: Vec<Span> =
            cut.iter().map(|span| Span { end: span.end.min(span.low + LOOKED_AT), ..span.clone() }).collect();
        let reading = self.reading.clone();
        let first: Vec<Option<Timestamp>> = vec![None; heads.len()];
        let first = topic::read(&self.cluster, &heads, watch, first, move |first, number, message| {
            if first[number].is_none() {
                let said = reading.see(message).and_then(|seen| seen.created_at);
                let stamped =
                    || message.timestamp().to_millis().map(|millis| Timestamp::from_unix_micros(millis * 1_000));
                first[number] = said.or_else(stamped);
            }
        });
        let last_cut = first.await?.into_iter().flatten().max();
        Ok(last_cut.filter(|at| *at > since).map_or(Retained::All, Retained::After))
    }

    /// That of its parts.
    pub(super) async fn oldest(&self, session: &Session) -> Result<Timestamp, Error> {
        oldest(session, &self.parts).await
    }

    /// How many rows there are from one instant to another, of each part counted up to [`REMOVED`].
    pub(super) async fn rows_up_to(&self, session: &Session, since: Timestamp, at: Timestamp) -> Result<u64, Error> {
        let bounds =
            Bounds { after: Position { created_at: since, id: None }, up_to: Position { created_at: at, id: None } };
        let mut rows = 0;
        for shape in &self.parts {
            rows += range::count(session, shape, &bounds, REMOVED).await?;
        }
        Ok(rows)
    }
}

/// The oldest row of the built-in outbox, whose delivered rows are pruned; of other tables no row is known to be. Each shard has an
/// oldest row of its own, and none if no key is of it.
pub(super) async fn oldest(session: &Session, parts: &[Arc<Shape>]) -> Result<Timestamp, Error> {
    if parts.first().is_none_or(|shape| shape.config.table.to_string() != BUILT_IN) {
        return Ok(Timestamp::NEG_INFINITY);
    }
    let mut oldest = Timestamp::INFINITY;
    for shape in parts {
        oldest = oldest.min(range::oldest(session, shape).await?.unwrap_or(Timestamp::INFINITY));
    }
    Ok(oldest)
}
