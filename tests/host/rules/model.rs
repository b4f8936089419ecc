//! A packet, and what the contract says of it: every rule is asked.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) proto: u8,
    pub(super) sport: u16,
    pub(super) dport: u16,
}

impl Packet {
    pub(super) fn udp(src: &str, dst: &str, sport: u16, dport: u16) -> Self {
        Self { src: src.parse().unwrap(), dst: dst.parse().unwrap(), proto: UDP, sport, dport }
    }

    pub(super) fn facts(&self) -> Facts {
        let address = |ip| match ip {
            IpAddr::V4(ip) => v4(ip),
            IpAddr::V6(ip) => v6(ip),
        };
        let family = if self.src.is_ipv4() { Family::V4 } else { Family::V6 };
        let (src, dst) = (address(self.src), address(self.dst));
        Facts { src, dst, sport: self.sport, dport: self.dport, proto: self.proto, family, ..Facts::default() }
    }
}

/// The number of the rule a packet meets: every rule is asked, and the best answer taken.
pub(super) fn expected(rules: &[Slotted<'_>], direction: Direction, packet: &Packet) -> u32 {
    let mut matching = Vec::new();
    for (age, Slotted { slot, rule: Rule { matches, .. } }) in rules.iter().enumerate() {
        let remote = match direction {
            Direction::Ingress => packet.src,
            Direction::Egress => packet.dst,
        };
        let local = if direction == Direction::Ingress { packet.dst } else { packet.src };
        let address = if matches.side == Side::Remote { remote } else { local };
        let longest = if matches.nets.is_empty() {
            Some(0)
        } else {
            matches.nets.iter().filter(|net| holds(net, address)).map(Net::len).max()
        };
        let Some(longest) = longest else { continue };
        if matches.proto.is_some_and(|proto| proto != packet.proto) || !ports_hold(matches.ports, packet) {
            continue;
        }
        matching.push((longest, matches.ports != Ports::Any, matches.proto.is_some(), Reverse(age), *slot));
    }
    matching.into_iter().max().map_or(DEFAULT_RULE, |(.., slot)| slot)
}

pub(super) fn holds(net: &Net, address: IpAddr) -> bool {
    match (net.address(), address) {
        (IpAddr::V4(net_address), IpAddr::V4(address)) => {
            let differs = u64::from(net_address.to_bits() ^ address.to_bits());
            differs >> (32 - net.len()) == 0
        }
        (IpAddr::V6(net_address), IpAddr::V6(address)) => {
            let differs = net_address.to_bits() ^ address.to_bits();
            net.is_empty() || differs >> (128 - net.len()) == 0
        }
        _ => false,
    }
}

pub(super) fn ports_hold(ports: Ports, packet: &Packet) -> bool {
    let within = |range: PortRange, port| (range.first..=range.last).contains(&port);
    let hold = match ports {
        Ports::Any => return true,
        Ports::Either(range) => within(range, packet.sport) || within(range, packet.dport),
        Ports::Source(range) => within(range, packet.sport),
        Ports::Destination(range) => within(range, packet.dport),
        Ports::Both { sport, dport } => within(sport, packet.sport) && within(dport, packet.dport),
    };
    let hidden = packet.sport == 0 && packet.dport == 0;
    [TCP, UDP, 33, 132, 136].contains(&packet.proto) && (hold || hidden)
}

// Rules, as tests write them.
