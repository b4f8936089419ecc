//! Full sets: what each policy lets pass, and that a flood makes nobody forget a debt.

use shaper_common::{
    abi::{Overflow, Settings},
    verdict::{Reason, Verdict},
};

use crate::{
    frames::udp4,
    rig::{Rig, settings, standing},
};

const FLOWS: u16 = 20;
const SIZE: usize = 1000;

fn rig(overflow: Overflow, burst: u64) -> Rig {
    Rig::ingress(Settings { overflow: overflow as u8, ..settings(1) }, standing(burst))
}

#[test]
fn eight_flows_in_debt_fill_a_set_and_the_policy_decides_about_the_others() {
    for (overflow, untracked_pass) in [(Overflow::Shared, 2), (Overflow::Open, 12), (Overflow::Closed, 0)] {
        let mut rig = rig(overflow, 2 * SIZE as u64 + 500);
        let outcomes: Vec<_> = (0..FLOWS).map(|port| rig.frame(&udp4(port, 53, SIZE))).collect();
        assert_eq!(outcomes[..8], [(Verdict::Pass, Reason::Conform); 8]);
        assert!(outcomes[8..].iter().all(|&(_, reason)| reason == Reason::Untracked));
        let passed = outcomes[8..].iter().filter(|&&(verdict, _)| verdict == Verdict::Pass).count();
        assert_eq!(passed, untracked_pass, "{overflow:?}");
        rig.assert_same_tables();
    }
}

#[test]
fn a_flood_of_new_flows_frees_nobody_of_a_debt() {
    let mut rig = rig(Overflow::Closed, SIZE as u64 + 500);
    assert_eq!(rig.frame(&udp4(1, 53, SIZE)), (Verdict::Pass, Reason::Conform));
    for port in 1000..3000 {
        let _outcome = rig.frame(&udp4(port, 53, SIZE));
    }
    assert_eq!(rig.frame(&udp4(1, 53, SIZE)), (Verdict::Drop, Reason::Rate));
    rig.assert_same_tables();
}
