//! The HTTP client of a sink.

use std::time::Duration;

use reqwest::{Client, redirect, retry};

use super::gate::Gate;
use super::{access, answer};
use crate::tls::{self, Verify};

/// Shorter than the five seconds after which common servers drop an idle connection: a request on a connection that
/// the server is just closing has an unknown outcome.
const IDLE: Duration = Duration::from_secs(4);

/// The client of one sink.
///
/// # Errors
/// What is wrong with the authorities or the relay's own certificate.
pub(super) fn client(timeout: Duration, gate: Option<&Gate>, access: &access::Config) -> Result<Client, String> {
    let connector = tls::connector_as(Verify::Name, access.ca_file.as_deref(), access.own()?, &["http/1.1"])?;
    let builder = match gate {
        Some(gate) => Client::builder().dns_resolver(gate.clone()),
        None => Client::builder(),
    };
    builder
        .tls_backend_preconfigured(connector)
        .user_agent(concat!("outbox-relay/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        // Every attempt is counted and paced by the relay, so the library must make none of its own.
        .retry(retry::never())
        .timeout(timeout)
        // Ends before `timeout` does, so that a time-out while connecting is known to have sent nothing.
        .connect_timeout(timeout.mul_f64(0.9))
        .pool_idle_timeout(IDLE)
        // As many as requests may be on their way at a time.
        .pool_max_idle_per_host(1_000)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| answer::reason(&error))
}
