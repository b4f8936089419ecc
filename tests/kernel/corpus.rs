//! The corpus of odd packets: the kernel charges each as its file says, and agrees with the host about what is left of
//! it at every length.

use shaper_common::{
    abi::{Count, Settings},
    cost::Cost,
    packet::Link,
};
use tests::corpus;

use crate::{
    rig::{Rig, settings, standing},
    skb::Skb,
};

#[test]
fn the_kernel_charges_every_odd_packet_as_its_file_says() {
    for sample in corpus::samples() {
        println!("{}", sample.name);
        let skb = Skb::plain(&sample.bytes).acceptable();
        // A tag that makes it acceptable costs its bytes.
        let cost = sample.cost + (skb.bytes.len() - sample.bytes.len()) as u64;
        let settings = Settings { link: sample.link as u8, ..settings(1) };
        let mut rig = Rig::ingress(settings, standing(cost));
        let mut counted = rig.counters();
        for (verdict, reason) in sample.charge.answers() {
            let outcome = rig.run(&skb);
            assert_eq!((outcome.verdict, outcome.reason), (verdict, reason));
            assert_eq!(outcome.cost, Cost { bytes: cost, packets: 1 });
            let Count { packets, bytes } = &mut counted.reasons[reason as usize];
            *packets += 1;
            *bytes += cost;
        }
        assert_eq!(rig.counters().reasons, counted.reasons);
        rig.assert_same_tables();
        let flows: Vec<_> = sample.key().into_iter().map(|key| (key, 1, 2)).collect();
        assert_eq!(rig.flows(), flows);
    }
}

#[test]
fn the_kernel_says_of_every_beginning_of_an_odd_packet_what_the_host_says() {
    for link in [Link::Ethernet, Link::Bare] {
        let settings = Settings { link: link as u8, ..settings(256) };
        for mut rig in [Rig::ingress, Rig::egress].map(|rig| rig(settings, standing(1 << 20))) {
            for sample in corpus::samples().iter().filter(|sample| sample.link == link) {
                for len in 0..=sample.bytes.len() {
                    let _outcome = rig.run(&Skb::plain(&sample.bytes[..len]).acceptable());
                }
            }
            rig.assert_same_tables();
        }
    }
}
