//! Holds connections to the addresses that [`super::address`] lets through.
//!
//! A name is judged where it is resolved for the connection itself: exactly the addresses that passed are handed to the
//! client, which asks nobody again. So a name that means something else a moment later (DNS rebinding) changes nothing. A
//! host that is an address is never resolved, so it is judged before the request goes out. A resolver that fails opens
//! nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address;

/// Why a host was not connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its address {address} is blocked ({range})")]
pub(in crate::sink) struct Blocked {
    address: IpAddr,
    range: &'static str,
}

/// See the module.
#[derive(Clone)]
pub(in crate::sink) struct Gate {
    allow: Arc<[IpNet]>,
    names: Arc<dyn Resolve>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("allow", &self.allow).finish_non_exhaustive()
    }
}

impl Gate {
    /// Lets through what is public, and these ranges; `names` resolves.
    pub(in crate::sink) fn new(allow: &[IpNet], names: Arc<dyn Resolve>) -> Self {
        Self { allow: allow.into(), names }
    }

    /// Judges the host of `url` if it is an address. The parser has brought every spelling of one (decimal, octal,
    /// hexadecimal, shortened, with a trailing dot) into one form before.
    pub(super) fn check(&self, url: &Url) -> Result<(), Blocked> {
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match host.parse() {
            Ok(address) => judge(address, &self.allow),
            Err(_) => Ok(()),
        }
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, allow) = (self.names.resolve(name), Arc::clone(&self.allow));
        Box::pin(async move {
            let mut blocked = None;
            let mut open = Vec::new();
            for address in found.await? {
                match judge(address.ip(), &allow) {
                    Ok(()) => open.push(address),
                    Err(reason) => blocked = Some(reason),
                }
            }
            match blocked {
                Some(blocked) if open.is_empty() => Err(blocked.into()),
                None if open.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into())
                }
                Some(_) | None => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

fn judge(address: IpAddr, allow: &[IpNet]) -> Result<(), Blocked> {
    match address::blocked(address, allow) {
        Some(range) => Err(Blocked { address, range }),
        None => Ok(()),
    }
}

/// The machine's own resolver.
#[derive(Debug)]
pub(in crate::sink) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The client puts the URL's port instead of 0.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
