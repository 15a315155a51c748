//! What the process shows to the outside over HTTP: `/livez`, `/readyz`, `/metrics`.

use std::net::SocketAddr;

/// `[admin]` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; loopback unless configured.
    pub listen: SocketAddr,
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9464)) }
    }
}
