//! Public addresses: all others belong to this machine or to local networks, or are unassigned.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IPv4 networks that are not public: the first address and the prefix length.
///
/// Source: the IANA IPv4 special-purpose address registry, and RFC 5771 for multicast.
const V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// The networks below 2000::/3 that are not public; all addresses outside of 2000::/3 are not public either.
///
/// Source: the IANA IPv6 special-purpose address registry. 2002::/16 would lead to any IPv4 address.
const V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// The prefix of IPv4 addresses in IPv6-only networks (RFC 6052).
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// True if an address is public.
pub fn is_public(address: IpAddr) -> bool {
    let within = |address: u128, network: u128, bits: u32| (address ^ network) >> (128 - bits) == 0;
    match address {
        IpAddr::V4(address) => {
            let wide = |address: Ipv4Addr| u128::from(u32::from(address)) << 96;
            !V4.iter()
                .any(|(network, bits)| within(wide(address), wide(*network), *bits))
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => is_public(inner.into()),
            None if within(address.into(), NAT64.into(), 96) => {
                let [.., a, b, c, d] = address.octets();
                is_public(Ipv4Addr::new(a, b, c, d).into())
            }
            None => {
                let is_global = within(address.into(), u128::from(0x2000_u16) << 112, 3);
                is_global
                    && !V6
                        .iter()
                        .any(|(network, bits)| within(address.into(), (*network).into(), *bits))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_public_only_outside_of_every_special_network() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.0",
            "100.128.0.1",
            "192.0.1.1",
            "223.255.255.255",
        ];
        let public6 = [
            "2606:4700::1",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:4860::1",
        ];
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.1.1",
            "169.254.169.254",
        ];
        let more = [
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
        ];
        let private6 = [
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "fe80::1",
        ];
        let more6 = [
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "3fff::1",
            "100::1",
        ];
        let judged = |text: &&str| is_public(text.parse().expect("an address"));
        for text in public.iter().chain(&public6) {
            assert!(judged(text), "{text}");
        }
        for text in private.iter().chain(&more).chain(&private6).chain(&more6) {
            assert!(!judged(text), "{text}");
        }
    }
}
