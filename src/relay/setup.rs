//! Checks before a relay runs.

pub(in crate::relay) mod begin;
pub(in crate::relay) mod deleted;
pub(in crate::relay) mod encoding;
pub(in crate::relay) mod fingerprint;
pub mod lane_memory;
pub(in crate::relay) mod naming;
pub mod prepare;
pub mod prepared;
pub(in crate::relay) mod renamed;
pub(in crate::relay) mod row_key;
pub(in crate::relay) mod shards;
pub(in crate::relay) mod sinks;
