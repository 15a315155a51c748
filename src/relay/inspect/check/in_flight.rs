//! How many messages may be on their way together, where they are sent side by side (`[relay.turn] in_flight`).

use crate::relay::Config;
use crate::source::Config as Source;
use crate::source::finding::{Finding, Level};

/// Over all replicas, or of each; none where messages are not sent side by side.
pub(super) fn finding(relay: &Config) -> Option<Finding> {
    let lanes = relay.lanes;
    lanes.are_used().then(|| Finding::new(Level::Ok, "messages_in_flight", message(&relay.source, lanes.in_flight)))
}

fn message(source: &Source, in_flight: usize) -> String {
    match source {
        Source::Stream(_) => format!("up to {in_flight} messages are on their way at a time, over all replicas"),
        Source::Pending(_) | Source::Requests(_) | Source::Schedule(_) => format!(
            "up to {in_flight} messages are on their way at a time from each replica: three replicas send up to {}. \
             rate_per_second holds over all of them",
            in_flight.saturating_mul(3)
        ),
    }
}
