//! GSO packets cost what their segments cost, at both hooks.

use shaper_common::{cost::Cost, verdict::Verdict};
use tests::frames::{Frame, Ipv4, Ipv6, Network, Upper};

use crate::{
    rig::{Rig, settings, standing},
    skb::Skb,
};

/// A super-packet with `payload` bytes behind `header`, as the kernel describes it at egress.
fn gso(frame: &Frame, header: u32, payload: u32, gso_size: u32) -> Skb {
    let bytes = frame.bytes();
    assert_eq!(bytes.len() as u32, header + payload);
    let gso_segs = payload.div_ceil(gso_size);
    Skb { wire_len: header + payload + (gso_segs - 1) * header, gso_segs, gso_size, bytes, ..Skb::default() }
}

#[test]
fn a_super_packet_costs_its_segments_at_both_hooks() {
    let tcp4 = |payload| Frame::ethernet(Network::V4(Ipv4::new(Upper::tcp(1, 2, 3, payload))));
    let tcp6 = |payload| Frame::ethernet(Network::V6(Ipv6::new(Upper::tcp(1, 2, 3, payload))));
    let udp = |payload| Frame::ethernet(Network::udp(1, 2, payload));
    for (frame, header, payload, gso_size, packets) in [
        (tcp4(3000), 66, 3000, 1448, 3),
        (tcp4(2896), 66, 2896, 1448, 2),
        (tcp6(2900), 86, 2900, 1428, 3),
        (udp(3000), 42, 3000, 1000, 3),
        (udp(3001), 42, 3001, 1000, 4),
        (udp(900), 42, 900, 1000, 1),
    ] {
        let skb = gso(&frame, header, payload, gso_size);
        let cost = Cost { bytes: u64::from(payload + packets * header), packets: u64::from(packets) };
        for rig in [Rig::ingress, Rig::egress] {
            let outcome = rig(settings(1), standing(1 << 30)).run(&skb);
            assert_eq!((outcome.verdict, outcome.cost), (Verdict::Pass, cost), "{payload} bytes by {gso_size}");
        }
    }
}

#[test]
fn at_egress_the_kernel_knows_the_headers_of_a_tunnel_inside() {
    // 3000 bytes in three segments, each with 50 bytes of VXLAN and 54 of inner headers more than the outer ones.
    let frame = Frame::ethernet(Network::udp(4789, 4789, 3000));
    let skb = Skb { bytes: frame.bytes(), wire_len: 3042 + 2 * 146, gso_segs: 3, gso_size: 1000, ..Skb::default() };
    let outcome = Rig::egress(settings(1), standing(1 << 30)).run(&skb);
    assert_eq!(outcome.cost, Cost { bytes: 3042 + 2 * 146, packets: 3 });
}

#[test]
fn a_guest_that_does_not_count_its_segments_is_charged_for_them() {
    let frame = Frame::ethernet(Network::V4(Ipv4::new(Upper::tcp(1, 2, 0, 3000))));
    let skb = Skb { bytes: frame.bytes(), wire_len: 3054, gso_segs: 0, gso_size: 1000, ..Skb::default() };
    for rig in [Rig::ingress, Rig::egress] {
        let outcome = rig(settings(1), standing(1 << 30)).run(&skb);
        assert_eq!(outcome.cost, Cost { bytes: 3162, packets: 3 });
    }
}
