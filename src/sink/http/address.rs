//! Which addresses a webhook may connect to: a pure decision over numbers, never over texts.
//!
//! Blocked is whatever is not the public internet: the machine itself, its network and its neighbours. An IPv4 address
//! counts in each form that IPv6 has for it. What this table does not know is blocked, so that a range that is given out
//! later needs a decision here, not a fix after harm.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Where clouds give a machine its credentials, some of them in public ranges. A wide range on an allow list is rarely
/// written with these in mind, so nothing opens them.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), // most clouds
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),   // AWS: containers
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),  // AWS: pods
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),    // Tencent
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),   // Scaleway
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle, first generation
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), // AWS
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)), // AWS: pods
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), // Google
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)), // Scaleway
];

/// IANA's special-purpose registry of IPv4, without what it calls globally reachable as a whole.
const V4: &[(Ipv4Net, &str)] = &[
    (v4([0, 0, 0, 0], 8), "unspecified"),
    (v4([10, 0, 0, 0], 8), "private"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    (v4([169, 254, 0, 0], 16), "link-local"),
    (v4([172, 16, 0, 0], 12), "private"),
    (v4([192, 0, 0, 0], 24), "protocol assignments"),
    (v4([192, 0, 2, 0], 24), "documentation"),
    (v4([192, 88, 99, 0], 24), "6to4 relay"),
    (v4([192, 168, 0, 0], 16), "private"),
    (v4([198, 18, 0, 0], 15), "benchmarking"),
    (v4([198, 51, 100, 0], 24), "documentation"),
    (v4([203, 0, 113, 0], 24), "documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([240, 0, 0, 0], 4), "reserved"),
];

/// What IPv6 blocks by name; outside of [`GLOBAL`] everything is blocked anyway. Tunnels (6to4, Teredo) are blocked as a
/// whole: they are out of use, and their addresses carry IPv4 ones.
const V6: &[(Ipv6Net, &str)] = &[
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "IPv4-compatible"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "local NAT64"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "Teredo"),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "benchmarking"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "protocol assignments"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4"),
    (v6([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16), "reserved"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique-local"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

/// All that IPv6 has given out as global unicast.
const GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// How a network without IPv4 reaches IPv4: the address carries it in its last 32 bits.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// Why `address` must not be connected to: the name of its range; `None` when it may be.
pub(in crate::sink) fn blocked(address: IpAddr, allow: &[IpNet]) -> Option<&'static str> {
    // The operating system connects to an IPv4-mapped address by IPv4.
    let address = address.to_canonical();
    if is_metadata(address) {
        return Some("cloud metadata");
    }
    if allow.iter().any(|range| range.contains(&address)) {
        return None;
    }
    match address {
        IpAddr::V4(address) => V4.iter().find(|(range, _)| range.contains(&address)).map(|(_, name)| *name),
        IpAddr::V6(address) => blocked_v6(address),
    }
}

fn blocked_v6(address: Ipv6Addr) -> Option<&'static str> {
    if NAT64.contains(&address) {
        return blocked(IpAddr::V4(last(address)), &[]);
    }
    let named = V6.iter().find(|(range, _)| range.contains(&address)).map(|(_, name)| *name);
    named.or_else(|| (!GLOBAL.contains(&address)).then_some("reserved"))
}

/// Whether it is where a cloud gives out credentials, in any form.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    let IpAddr::V6(wide) = address else { return METADATA.contains(&address) };
    METADATA.contains(&address)
        || carried(wide).into_iter().flatten().any(|inner| METADATA.contains(&IpAddr::V4(inner)))
}

/// The IPv4 addresses that an IPv6 address may stand for, on an allow list or not: mapped, compatible, NAT64 and ISATAP
/// have it last; 6to4, Teredo and a local NAT64 of 48 bits elsewhere.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [_, _, a, b, c, d, e, f, _, g, h, ..] = address.octets();
    let other = match address.segments() {
        [0x2002, ..] => Some(Ipv4Addr::new(a, b, c, d)),
        [0x2001, 0, ..] => Some(Ipv4Addr::from_bits(!last(address).to_bits())),
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::new(e, f, g, h)),
        _ => None,
    };
    [Some(last(address)), other]
}

/// The last 32 bits as an IPv4 address.
fn last(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests;
