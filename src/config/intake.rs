//! `[intake]`.

use std::net::SocketAddr;
use std::time::Duration;

use super::section::Section;
use super::{listen, value};
use crate::intake::Config;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9465);
const DEFAULT_BODY_LIMIT: u64 = 64 << 10;
const DEFAULT_CONNECTIONS: u64 = 2;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// None when the section is not there, or is wrong and reported.
pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    if !section.is_present() {
        return None;
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let fix = "name the file of the tokens that are accepted: token_file = \"/run/secrets/intake-tokens\"";
    let token_file = section.require("token_file", value::path, fix);
    let listen = section.read("listen", value::parsed(listen)).unwrap_or(DEFAULT_LISTEN);
    let body_limit = section.read("body_limit", value::size(1 << 10..=16 << 20)).unwrap_or(DEFAULT_BODY_LIMIT);
    let connections = section.read("connections", value::integer(1..=100)).unwrap_or(DEFAULT_CONNECTIONS);
    let bounds = Duration::from_secs(1)..=Duration::from_secs(60);
    let timeout = section.read("timeout", value::duration(bounds)).unwrap_or(DEFAULT_TIMEOUT);
    Some(Config {
        listen,
        token_file: token_file?,
        body_limit: number(body_limit),
        connections: number(connections),
        timeout,
    })
}
