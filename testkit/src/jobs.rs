//! The scenario jobs: one application that makes a pending row and a request for each message, and three relays that send them
//! to one provider, many at a time. Two have lanes (`in_flight` and `lane` of `[relay.turn]`), so that each number gets its
//! messages in order; one sends each row on its own, beside them.
//!
//! The provider fails, hangs and answers late, replicas are killed and start again. The verdict comes from the table and from
//! what the provider has: whether each message came, how often, and whether one came while an earlier one to its number was
//! open.

mod judge;
mod play;
mod rows;
mod scene;
mod summary;

pub(super) use scene::Scene;

/// The relays: pending rows without lanes and with, requests with lanes.
const RELAYS: [&str; 3] = ["alone", "lanes", "requests"];
/// How many messages each replica may have on their way, of each relay.
const IN_FLIGHT: usize = 20;
