//! Requests over HTTP: what is answered, what is refused, and that no trouble makes a second one.

mod answers;
mod busy_keys;
mod contract;
mod kills;
mod listener;
mod refusals;
