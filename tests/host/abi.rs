//! The contract with the object: a layout that changes unnoticed would be read as something else.

use shaper_common::{
    abi::{self, FINGERPRINT, Overflow, VERSION},
    cost::Account,
    packet::Link,
    verdict::Reason,
};

#[test]
fn the_layout_is_the_one_that_the_version_stands_for() {
    let pinned = (3, 10_150_734_818_061_437_167);
    assert_eq!((VERSION, FINGERPRINT), pinned, "layout changed: bump abi::VERSION, then pin the new fingerprint here");
}

#[test]
fn the_reasons_have_their_names_in_the_order_of_their_counters() {
    let names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(
        names,
        [
            "conform",
            "rate",
            "pps",
            "peak",
            "total",
            "device_total",
            "oversize",
            "untracked",
            "blocked",
            "delay",
            "exempt",
        ],
        "names and numbers of reasons are part of the contract: new ones go to the end"
    );
    assert_eq!(Reason::COUNT, names.len());
    for (index, &reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(reason as usize, index, "{reason:?}");
    }
}

#[test]
fn the_numbers_in_the_settings_keep_their_meaning() {
    assert_eq!([Link::Ethernet as u8, Link::Bare as u8], [0, 1]);
    assert_eq!([Account::L2 as u8, Account::L3 as u8], [0, 1]);
    for (number, overflow) in [Overflow::Shared, Overflow::Open, Overflow::Closed].into_iter().enumerate() {
        assert_eq!(Overflow::from_u8(number as u8), Some(overflow));
        assert_eq!(overflow as usize, number);
    }
    assert!((3..=255).all(|number| Overflow::from_u8(number).is_none()));
}

#[test]
fn the_names_in_the_object_are_those_the_tool_asks_for() {
    let names = [abi::program::TC_INGRESS, abi::program::TC_EGRESS]
        .into_iter()
        .chain([abi::map::FLOWS, abi::map::CONTROL, abi::map::RULES, abi::map::STATES, abi::map::COUNTERS])
        .chain([abi::map::OWNER]);
    for name in names {
        // BPF_OBJ_NAME_LEN is 16 with the terminating zero; the kernel cuts nothing off, it refuses.
        assert!(name.len() < 16, "{name} is too long for the kernel");
    }
}
