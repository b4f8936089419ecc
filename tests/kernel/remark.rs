//! What a marked packet looks like, to the byte, and that its checksum is right.

use shaper_common::{
    abi::{RuleLimits, Settings, feature, program},
    key::Per,
    verdict::{Action, Verdict},
};
use tests::frames::{Frame, Ipv4, Ipv6, Network, Upper};

use crate::{
    rig::{Rig, settings, standing},
    skb::Skb,
};

/// Offset of the type of service, and of the checksum, behind the link header.
const TOS: usize = 1;
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// One bucket for all packets, used up by the first.
fn rig(program: &'static str, action: Action) -> Rig {
    let limits = RuleLimits { rate: standing(2000), exceed: action.into(), ..RuleLimits::default() };
    let features = feature::RATE | feature::ACTION;
    let settings = Settings { per: Per::Dev as u8, features, ..settings(1) };
    let mut rig = Rig::new(program, settings, limits);
    assert_eq!(rig.run(&Skb::plain(&frame4(0, &[]).bytes())).verdict, Verdict::Pass);
    rig
}

const PROGRAMS: [&str; 2] = [program::TC_INGRESS, program::TC_EGRESS];
const TAGS: [&[u16]; 3] = [&[], &[0x8100], &[0x88a8, 0x8100]];

fn frame4(options: u8, tags: &[u16]) -> Frame {
    Frame::ethernet(Network::V4(Ipv4 { options, ..Ipv4::new(Upper::udp(1, 53, 1500)) })).tagged(tags)
}

fn frame6(tags: &[u16]) -> Frame {
    Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(1, 53, 1500)))).tagged(tags)
}

/// The frame with this traffic class; for IPv4 with a checksum that is computed anew.
fn with_class(frame: &Frame, class: u8) -> Vec<u8> {
    let mut bytes = frame.bytes();
    let ip = &mut bytes[frame.l2_len() as usize..];
    if ip[0] >> 4 == 4 {
        let header_len = usize::from(ip[0] & 0xf) * 4;
        ip[TOS] = class;
        ip[CHECKSUM].fill(0);
        let sum = tests::frames::checksum(&ip[..header_len]);
        ip[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    } else {
        ip[0] = 0x60 | class >> 4;
        ip[1] = class << 4 | ip[1] & 0xf;
    }
    bytes
}

/// Both programs with one action.
fn rigs(action: Action) -> [Rig; 2] {
    PROGRAMS.map(|program| rig(program, action))
}

/// Sends `frame` with a traffic class to both programs; the class it has afterwards, or `None` if it was dropped.
fn after(rigs: &mut [Rig; 2], frame: &Frame, class: u8) -> Option<u8> {
    let classes = rigs.each_mut().map(|rig| {
        let skb = Skb::plain(&with_class(frame, class));
        let (verdict, out) = rig.kernel(&skb);
        // Once more beside the host, for the counters.
        assert_eq!(rig.run(&skb).verdict, verdict);
        let class = || (0..=255).find(|&class| with_class(frame, class) == out.bytes);
        (verdict == Verdict::Pass).then(|| class().expect("only the class has changed"))
    });
    assert_eq!(classes[0], classes[1]);
    classes[0]
}

#[test]
fn a_dscp_is_written_and_the_ecn_bits_stay() {
    for (dscp, before) in [(8, 0), (46, 10), (0, 63), (63, 0)] {
        let mut rigs = rigs(Action::Dscp(dscp));
        for tags in TAGS {
            for frame in [frame4(0, tags), frame4(10, tags), frame6(tags)] {
                for ecn in 0..4 {
                    assert_eq!(after(&mut rigs, &frame, before << 2 | ecn), Some(dscp << 2 | ecn));
                }
            }
        }
    }
}

#[test]
fn congestion_is_marked_only_on_capable_transport() {
    let mut rigs = rigs(Action::Ecn);
    for tags in TAGS {
        for frame in [frame4(0, tags), frame4(3, tags), frame6(tags)] {
            for dscp in [0, 46 << 2] {
                assert_eq!(after(&mut rigs, &frame, dscp), None, "not capable: dropped");
                assert_eq!(after(&mut rigs, &frame, dscp | 1), Some(dscp | 3));
                assert_eq!(after(&mut rigs, &frame, dscp | 2), Some(dscp | 3));
                assert_eq!(after(&mut rigs, &frame, dscp | 3), Some(dscp | 3), "passes as it is");
            }
        }
    }
}

#[test]
fn a_firewall_mark_is_set() {
    for mark in [1, 0xdead_beef] {
        let rig = rig(program::TC_INGRESS, Action::Mark(mark));
        let skb = Skb::plain(&frame4(0, &[]).bytes());
        let (verdict, out) = rig.kernel(&skb);
        assert_eq!((verdict, out.mark), (Verdict::Pass, mark));
        assert_eq!(out.bytes, skb.bytes);
    }
}

#[test]
fn what_is_marked_is_counted_as_that() {
    let mut rig = rig(program::TC_EGRESS, Action::Ecn);
    for class in [1, 2, 3, 0] {
        let _outcome = rig.run(&Skb::plain(&with_class(&frame6(&[]), class)));
    }
    let counters = rig.counters();
    assert_eq!([counters.marked.packets, counters.dropped.packets], [2, 1]);
}

#[test]
fn to_pass_changes_nothing() {
    assert_eq!(after(&mut rigs(Action::Pass), &frame4(0, &[]), 0x28), Some(0x28));
}
