//! The corpus of odd packets: the same answer in the kernel as on the host.

use shaper_common::abi::Settings;
use tests::corpus;

use crate::{
    rig::{Rig, settings, standing},
    skb::Skb,
};

#[test]
fn the_kernel_says_of_every_odd_packet_what_the_host_says() {
    for sample in corpus::samples() {
        let settings = Settings { link: sample.link as u8, ..settings(1) };
        let mut rig = Rig::ingress(settings, standing(1 << 20));
        println!("{}", sample.name);
        let _outcome = rig.run(&Skb::plain(&sample.bytes).acceptable());
        rig.assert_same_tables();
    }
}
