//! Relays that send their rows individually: due work, requests, scheduled actions.

pub(in crate::relay) mod actions;
pub(in crate::relay) mod checked;
pub(in crate::relay) mod failure_tracker;
pub(in crate::relay) mod pending;
pub(in crate::relay) mod requests;
mod runner;
mod work;
