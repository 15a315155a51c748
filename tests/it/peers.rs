//! Peers of sinks that keep to no protocol: what they say ends as it should, and costs no row.

mod gateways;
mod smtp;
