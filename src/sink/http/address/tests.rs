use proptest::prelude::*;

use super::*;

fn why(text: &str, allow: &[&str]) -> Option<&'static str> {
    let allow: Vec<IpNet> = allow.iter().map(|range| range.parse().expect("a range")).collect();
    blocked(text.parse().expect("an address"), &allow)
}

#[test]
fn ranges_are_blocked_from_their_first_address_to_their_last() {
    for (first, last, name) in [
        ("0.0.0.0", "0.255.255.255", "unspecified"),
        ("10.0.0.0", "10.255.255.255", "private"),
        ("100.64.0.0", "100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.0", "127.255.255.255", "loopback"),
        ("169.254.0.0", "169.254.255.255", "link-local"),
        ("172.16.0.0", "172.31.255.255", "private"),
        ("192.0.0.0", "192.0.0.255", "protocol assignments"),
        ("192.0.2.0", "192.0.2.255", "documentation"),
        ("192.88.99.0", "192.88.99.255", "6to4 relay"),
        ("192.168.0.0", "192.168.255.255", "private"),
        ("198.18.0.0", "198.19.255.255", "benchmarking"),
        ("198.51.100.0", "198.51.100.255", "documentation"),
        ("203.0.113.0", "203.0.113.255", "documentation"),
        ("224.0.0.0", "239.255.255.255", "multicast"),
        ("240.0.0.0", "255.255.255.255", "reserved"),
        ("::", "::", "unspecified"),
        ("::1", "::1", "loopback"),
        ("::2", "::ffff:fffe", "IPv4-compatible"),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "local NAT64"),
        ("100::", "100::ffff:ffff:ffff:ffff", "discard"),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "Teredo"),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmarking"),
        ("2001:10::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "protocol assignments"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique-local"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local"),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"),
        ("200::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"),
        ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"),
    ] {
        assert_eq!((why(first, &[]), why(last, &[])), (Some(name), Some(name)), "{first} to {last}");
    }
}

#[test]
fn their_neighbours_are_public() {
    for address in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "2000::1",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700:4700::1111",
        "3ffd::1",
        "3fff:1000::1",
        "64:ff9b::8.8.8.8",
        "::ffff:8.8.8.8",
    ] {
        assert_eq!(why(address, &[]), None, "{address}");
    }
}

#[test]
fn where_clouds_give_out_credentials_is_opened_by_nothing() {
    let everything = ["0.0.0.0/0", "::/0"];
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2002:a9fe:a9fe::1",
        "2001:0:1234::5601:5601",
        "2a00::5efe:169.254.169.254",
    ] {
        assert_eq!(why(address, &everything), Some("cloud metadata"), "{address}");
        assert_eq!(why(address, &[]), Some("cloud metadata"), "{address}");
    }
    assert_eq!((why("169.254.1.1", &everything), why("127.0.0.1", &everything)), (None, None));
}

#[test]
fn an_allowed_range_is_exact_and_counts_for_mapped_forms() {
    let allow = ["10.1.0.0/16", "::1/128"];
    for (address, open) in [
        ("10.1.0.0", true),
        ("10.1.255.255", true),
        ("::ffff:10.1.2.3", true),
        ("::1", true),
        ("10.0.255.255", false),
        ("10.2.0.0", false),
        ("127.0.0.1", false),
        ("::2", false),
        ("64:ff9b::10.1.2.3", false),
        ("2002:a01:203::1", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(why(address, &allow).is_none(), open, "{address}");
    }
}

/// What the standard library says, and the ranges that it keeps to itself.
fn is_special(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_unspecified()
        || a == 0
        || a >= 240
        || (a == 100 && b & 0xc0 == 64)
        || (a == 198 && b & 0xfe == 18)
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || METADATA.contains(&IpAddr::V4(address))
}

/// Addresses near the edges of ranges as well as anywhere.
fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    let near = (0..V4.len(), -2_i64..=2, any::<bool>()).prop_map(|(number, step, end)| {
        let range = V4[number].0;
        let edge = if end { range.broadcast() } else { range.network() };
        Ipv4Addr::from_bits(u32::try_from((i64::from(edge.to_bits()) + step).rem_euclid(1 << 32)).unwrap_or_default())
    });
    prop_oneof![near, any::<u32>().prop_map(Ipv4Addr::from_bits)]
}

fn within(prefix: [u16; 6], inner: Ipv4Addr) -> IpAddr {
    let [a, b, c, d] = inner.octets();
    let [p, q, r, s, t, u] = prefix;
    Ipv6Addr::new(p, q, r, s, t, u, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])).into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn an_ipv4_address_is_judged_alike_in_every_form(address in any_v4()) {
        let shut = blocked(address.into(), &[]).is_some();
        prop_assert_eq!(shut, is_special(address));
        prop_assert_eq!(blocked(within([0, 0, 0, 0, 0, 0xffff], address), &[]).is_some(), shut);
        prop_assert_eq!(blocked(within([0x64, 0xff9b, 0, 0, 0, 0], address), &[]).is_some(), shut);
        prop_assert!(blocked(within([0; 6], address), &[]).is_some());
        let [a, b, c, d] = address.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        prop_assert!(blocked(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into(), &[]).is_some());
        prop_assert!(blocked(Ipv6Addr::new(0x2001, 0, 1, 2, 3, 4, !high, !low).into(), &[]).is_some());
    }

    #[test]
    fn what_is_open_in_ipv6_is_global_or_translated(bits in any::<u128>(), global in any::<bool>()) {
        let bits = if global { bits >> 3 | 1 << 125 } else { bits };
        let address = Ipv6Addr::from_bits(bits);
        if blocked(address.into(), &[]).is_none() {
            prop_assert!(GLOBAL.contains(&address) || NAT64.contains(&address), "{address}");
            prop_assert!(!V6.iter().any(|(range, _)| range.contains(&address)), "{address}");
        }
    }

    // Guarantee: secrets.webhook-addresses
    #[test]
    fn an_allowed_range_opens_its_addresses_and_no_other(address in any_v4(), other in any_v4(), bits in 1_u8..=32) {
        let range = Ipv4Net::new(other, bits).expect("a range").trunc();
        let open = blocked(address.into(), &[range.into()]).is_none();
        let metadata = METADATA.contains(&IpAddr::V4(address));
        prop_assert_eq!(open, !metadata && (range.contains(&address) || !is_special(address)));
    }
}
