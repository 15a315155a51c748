//! The scenario reminders: two systems of due work, a provider that fails, hangs and answers late, replicas that are
//! killed and started again, and a verdict from what the provider has.
//!
//! Reminders are sent at least once: every row that is due arrives and is marked, none before it is due, and one comes
//! again only when the sender could not know that it had arrived. Welcome messages are sent at most once: no address gets
//! two, and who gets none stands in the list of unknown outcomes.

mod judge;
mod play;
mod rows;
mod scene;
mod summary;

pub(super) use scene::Scene;
