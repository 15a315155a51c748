//! The scenario lanes: one table of messages, three relays that send all of it to one provider side by side, and one number that the
//! provider refuses for a while. The relays differ in what they do then: halt, write a dead letter, or park the number.
//!
//! Meanwhile replicas are killed. When the provider takes the number again, an operator gives one command for each relay. The verdict
//! comes from the table and from what the provider has: what was sent, what waited, and whether the messages of each number came in order.

mod judge;
mod play;
mod rows;
mod scene;
mod summary;

pub(super) use scene::Scene;

/// The relays, each named after its `on_poison`.
const RELAYS: [&str; 3] = ["halt", "dead_letter", "park_key"];
/// How many messages each may have on their way.
const IN_FLIGHT: usize = 20;
