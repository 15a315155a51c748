//! Committed rows that were once lost: each case as it was found, on a real server, kept so that it stays closed.
//!
//! A case is a script of sessions around a relay that would pass a row without delivering it. Every test delivers all
//! rows, or ends in a halt that names the reason; none is silent.

mod detach;
mod keys;
mod messages;
mod prepared;
mod roles;
mod rule_change;
mod servers;
mod snapshot;
mod stamps;
mod words;
