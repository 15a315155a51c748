//! Checks before a relay runs.

pub(in crate::relay) mod begin;
pub mod prepare;
pub mod prepared;
pub(in crate::relay) mod renamed;
pub(in crate::relay) mod shards;
pub(in crate::relay) mod sinks;
