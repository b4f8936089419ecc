//! Devices of a namespace, asked for by netlink: `/sys/class/net` shows the namespace that /sys was mounted in.

use crate::{
    error::{Error, Result},
    model::Device,
    near::nearest,
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
    named(&devices(namespace)?, name).cloned()
}

/// The one of `devices` that is called `name`.
///
/// # Errors
///
/// If there is none, with the nearest name there is.
pub fn named<'d>(devices: &'d [Device], name: &str) -> Result<&'d Device> {
    match devices.iter().find(|device| device.name == name) {
        Some(device) => Ok(device),
        None => Err(Error::NoSuchDevice {
            name: name.to_owned(),
            suggestion: nearest(name, devices.iter().map(|device| device.name.as_str())).map(str::to_owned),
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
