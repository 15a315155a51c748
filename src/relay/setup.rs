//! Checks before a relay runs.

pub(in crate::relay) mod begin;
pub(in crate::relay) mod checked;
pub mod prepare;
pub(in crate::relay) mod renamed;
pub(in crate::relay) mod sinks;
pub(in crate::relay) mod topics;
