//! Devices of a namespace, asked for by netlink: `/sys/class/net` shows the namespace that /sys was mounted in.

use crate::{
    error::{Error, Result},
    model::Device,
    net::{
        Namespace,
        netlink::{Attributes, Message, Socket, field},
    },
};

/// Bytes of `struct ifinfomsg`: family, padding, type (at 2), index (at 4), flags (at 8), change mask.
const IFINFOMSG: usize = 16;

/// Devices whose packets start with the IP header at both hooks (`include/uapi/linux/if_arp.h`): PPP, raw IP modems,
/// IP-in-IP, SIT, GRE over IPv4 and IPv6, and `ARPHRD_NONE`, which tun and WireGuard are.
const BARE: [u16; 8] = [512, 519, 768, 769, 776, 778, 823, 0xfffe];

/// All devices of `namespace`, which this thread must be in, in the kernel's order.
///
/// # Errors
///
/// If netlink does not answer.
pub fn devices(namespace: &Namespace) -> Result<Vec<Device>> {
    let what = || match namespace.name() {
        Some(name) => format!("list the devices of network namespace `{name}`"),
        None => "list the network devices".to_owned(),
    };
    let mut request = Message::dump(libc::RTM_GETLINK);
    request.body(&[0; IFINFOMSG]);
    let answers =
        Socket::route().and_then(|socket| socket.dump(request)).map_err(|source| Error::io(what())(source))?;
    Ok(answers.iter().filter_map(|answer| parse(answer)).collect())
}

/// The device called `name`.
///
/// # Errors
///
/// If there is none, with the nearest name there is.
pub fn device(namespace: &Namespace, name: &str) -> Result<Device> {
    let devices = devices(namespace)?;
    match devices.iter().find(|device| device.name == name) {
        Some(device) => Ok(device.clone()),
        None => Err(Error::NoSuchDevice {
            name: name.to_owned(),
            suggestion: nearest(name, devices.iter().map(|device| device.name.as_str())),
        }),
    }
}

fn parse(answer: &[u8]) -> Option<Device> {
    let kind = u16::from_ne_bytes(field(answer, 2)?);
    let ifindex = u32::from_ne_bytes(field(answer, 4)?);
    let flags = u32::from_ne_bytes(field(answer, 8)?);
    let name = Attributes::of(answer.get(IFINFOMSG..)?).text(libc::IFLA_IFNAME)?;
    let ethernet = matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK);
    Some(Device {
        name,
        ifindex,
        ethernet,
        readable: ethernet || BARE.contains(&kind),
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
    })
}

/// The candidate closest to `name`, if it is close: at most two edits, and fewer than half of the letters.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = 2.min(name.chars().count().saturating_sub(1) / 2);
    candidates
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's distance, row by row.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, nearest};

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("eth0", "eth0"), 0);
        assert_eq!(edits("eth0", "eht0"), 2);
        assert_eq!(edits("eth", "eth0"), 1);
        assert_eq!(edits("", "eth0"), 4);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let there = ["lo", "eth0", "wlan0"];
        assert_eq!(nearest("eth1", there.into_iter()).as_deref(), Some("eth0"));
        assert_eq!(nearest("wlan1", there.into_iter()).as_deref(), Some("wlan0"));
        assert_eq!(nearest("x", there.into_iter()), None);
        assert_eq!(nearest("bridge", there.into_iter()), None);
    }
}
