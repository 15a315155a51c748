//! What a topic still has of a range: retention deletes the oldest records.

use std::sync::Arc;

use rdkafka::message::Message as _;

use super::topic::{self, Span, Watch};
use super::{Problem, Subject};
use crate::position::Timestamp;

/// So many records are read to find one that says how old it is.
const LOOKED_AT: i64 = 500;

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
}
