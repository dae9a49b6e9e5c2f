//! Which addresses may be asked for a picture: those of the public internet, less what the caller keeps for itself. Never resolves a name.

// `core::net` has addresses and nothing that connects.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(octets: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), length)
}

/// IPv4 networks that are not the public internet: IANA's registry of special purposes, and what clouds put between.
const NOT_PUBLIC_V4: &[Ipv4Net] = &[
    v4([0, 0, 0, 0], 8),        // this network; 0.0.0.0 is this host
    v4([10, 0, 0, 0], 8),       // private
    v4([100, 64, 0, 0], 10),    // behind a carrier's NAT; some clouds have their metadata here
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // Azure's own services, as seen from a machine there
    v4([169, 254, 0, 0], 16),   // link-local; most clouds have their metadata here
    v4([172, 16, 0, 0], 12),    // private
    v4([192, 0, 0, 0], 24),     // protocol assignments
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 88, 99, 0], 24),   // relays of 6to4
    v4([192, 168, 0, 0], 16),   // private
    v4([198, 18, 0, 0], 15),    // benchmarking
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, and broadcast
];

/// The only IPv6 addresses that are handed out for the internet. Outside are loopback, link-local, site-local and unique local ones, multicast,
/// and IPv4 addresses in disguise (`::ffff:10.0.0.1`, `::10.0.0.1`).
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// What is special within them.
const NOT_PUBLIC_V6: &[Ipv6Net] = &[
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // protocol assignments: Teredo, benchmarking, ORCHID
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), // 6to4: any IPv4 address in disguise
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation
];

/// Where a network without IPv4 shows the IPv4 internet (NAT64): the address is in the last four octets.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// Whether an address is one of the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match (address, behind_nat64(address)) {
        (IpAddr::V4(address), _) | (_, Some(address)) => {
            !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address))
        }
        (IpAddr::V6(address), None) => {
            GLOBAL_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
        }
    }
}

/// Whether an address may be asked: it is public, and in none of these networks (such as those of the cluster's own nodes, pods and services).
#[must_use]
pub fn is_allowed(address: IpAddr, refused: &[IpNet]) -> bool {
    let ends_at = behind_nat64(address).map(IpAddr::V4);
    let is_in = |network: &IpNet| network.contains(&address) || ends_at.is_some_and(|end| network.contains(&end));
    is_public(address) && !refused.iter().any(is_in)
}

/// The IPv4 address that a connection to this one ends at, behind the translator that everybody knows.
fn behind_nat64(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V6(address) if NAT64.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::from_octets([a, b, c, d]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// All forms in which an IPv6 address can carry this IPv4 address.
    fn disguises(address: Ipv4Addr) -> Vec<Ipv6Addr> {
        let [a, b, c, d] = address.octets().map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        vec![
            address.to_ipv6_mapped(),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low),
        ]
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "93.184.215.14",
            "172.15.255.255",
            "172.32.0.0",
            "100.128.0.0",
            "168.63.129.17",
            "223.255.255.255",
        ] {
            assert!(is_public(ip(address)), "{address}");
        }
        for address in ["2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "2001:200::1", "64:ff9b::1.1.1.1"] {
            assert!(is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn what_leads_back_inside_is_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_public(ip(address)), "{address}");
        }
        for address in [
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn the_cluster_keeps_its_own_addresses_to_itself() {
        let own: Vec<IpNet> = ["8.8.0.0/16".parse().unwrap(), "2606:4700::/32".parse().unwrap()].into();
        for (address, allowed) in [
            ("8.8.4.4", false),
            ("64:ff9b::8.8.4.4", false),
            ("8.9.0.0", true),
            ("2606:4700::1", false),
            ("2606:4701::1", true),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_allowed(ip(address), &own), allowed, "{address}");
        }
    }

    #[test]
    fn networks_are_refused_from_their_first_address_to_their_last() {
        for network in NOT_PUBLIC_V4 {
            assert!(!is_public(network.network().into()) && !is_public(network.broadcast().into()), "{network}");
            assert_eq!(*network, network.trunc(), "a network is written by its first address");
        }
        for network in NOT_PUBLIC_V6 {
            assert!(!is_public(network.network().into()) && !is_public(network.broadcast().into()), "{network}");
            assert!(GLOBAL_V6.contains(network), "{network} is refused without being listed");
        }
    }

    prop_compose! {
        /// Any IPv4 address, those of special networks as often as others.
        fn any_v4()(inside in any::<bool>(), network in proptest::sample::select(NOT_PUBLIC_V4), bits in any::<u32>()) -> Ipv4Addr {
            let free = bits & u32::from(network.hostmask());
            if inside { Ipv4Addr::from(u32::from(network.network()) | free) } else { Ipv4Addr::from(bits) }
        }
    }

    proptest! {
        #[test]
        fn no_address_that_the_standard_library_calls_special_is_public(address in any_v4()) {
            let special = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
                || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
            prop_assert!(!(special && is_public(address.into())));
        }

        #[test]
        fn no_disguise_makes_an_address_public(address in any_v4()) {
            for disguise in disguises(address) {
                prop_assert!(is_public(address.into()) || !is_public(disguise.into()), "{} as {}", address, disguise);
            }
        }

        #[test]
        fn every_public_ipv6_address_is_of_the_internet(address in any::<Ipv6Addr>()) {
            let special = address.is_loopback() || address.is_unspecified() || address.is_multicast() || address.is_unique_local()
                || address.is_unicast_link_local() || address.to_ipv4().is_some();
            prop_assert!(!(special && is_public(address.into())));
            prop_assert!(!is_public(address.into()) || address.segments()[0] >> 13 == 1);
        }

        #[test]
        fn what_is_allowed_is_public_and_in_no_refused_network(address in any_v4(), of in any_v4(), length in 0u8..=32) {
            let network = IpNet::new(of.into(), length).unwrap();
            let allowed = is_allowed(address.into(), &[network]);
            prop_assert_eq!(allowed, is_public(address.into()) && !network.contains(&IpAddr::V4(address)));
            for disguise in disguises(address) {
                prop_assert!(allowed || !is_allowed(disguise.into(), &[network]), "{} as {}", address, disguise);
            }
        }
    }
}
