//! The horizon: no row is skipped, and nobody but the table's writers is waited for. Transactions are scripted on
//! several connections; each test runs as the least-privilege role, and again as one that may read all statistics.

mod clock;
mod family;
mod opening;
mod prepared;
mod replication;
mod roles;
mod standby;
mod statements;
mod writers;

/// The roles that a relay may run as: start times of other sessions hidden, and readable.
const ROLES: [&str; 2] = ["relay", "relay_stats"];
