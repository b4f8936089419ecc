//! Readers of addresses and ports, until the command line has its own.

use crate::{
    error::Invalid,
    model::{Net, PortRange},
};

pub(super) fn net(text: &str) -> Result<Net, Invalid> {
    let bad = || Invalid::new(format!("`{text}` is not a prefix"), "write it like 10.20.0.0/16");
    let (address, len) = text.split_once('/').ok_or_else(bad)?;
    let net = address.parse().ok().and_then(|address| Net::new(address, len.parse().ok()?));
    net.ok_or_else(bad)
}

pub(super) fn port(text: &str) -> Result<PortRange, Invalid> {
    let bad = || Invalid::new(format!("`{text}` is not a port"), "write it like 53 or 5000-5999");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().and_then(|first| Some(PortRange { first, last: last.parse().ok()? }));
    range.filter(|range| range.first > 0 && range.first <= range.last).ok_or_else(bad)
}

pub(super) fn proto(text: &str) -> Result<u8, Invalid> {
    let number =
        [("icmp", 1), ("tcp", 6), ("udp", 17)].iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let bad = || Invalid::new(format!("`{text}` is not a protocol"), "write it like udp or 17");
    number.or_else(|| text.parse().ok()).ok_or_else(bad)
}
