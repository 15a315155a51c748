//! Tells of transactions that are not waited for any longer, once each.

use std::collections::BTreeSet;

use crate::source::horizon::Horizon;
use crate::source::shape::Shape;

/// The transactions that have been told of and are still there.
#[derive(Debug, Default)]
pub(in crate::relay) struct PassedOver(BTreeSet<String>);

impl PassedOver {
    /// Logs those that the last scan was the first to pass over.
    pub(in crate::relay) fn tell(&mut self, shape: &Shape, horizon: &Horizon) {
        if horizon.passed_over.is_empty() && self.0.is_empty() {
            return;
        }
        let known = std::mem::take(&mut self.0);
        for held in &horizon.passed_over {
            let transaction = &held.holder.transaction;
            if !known.contains(transaction) {
                tracing::warn!(
                    table = %shape.config.table,
                    pid = held.holder.pid,
                    application = held.holder.application,
                    transaction,
                    since = held.holder.started.map(|since| since.to_string()),
                    max_hold = ?shape.config.max_hold.unwrap_or_default(),
                    hint = "The rows of others go on. What it commits is delivered late, behind rows that were created after it, and counted \
                            as late_rows.",
                    "a transaction has been open for longer than max_hold and is not waited for any longer"
                );
            }
            self.0.insert(transaction.clone());
        }
    }
}
