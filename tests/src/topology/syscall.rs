//! The few kernel calls that neither the standard library nor nix offers: all unsafe code of the network tests.

use std::{
    ffi::{CStr, CString, c_int},
    io,
    mem::size_of,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, LinkAddr, SockFlag, SockType, SockaddrLike, socket},
};

/// The address of a device for an `AF_PACKET` socket; `ethertype` says which frames it hears.
pub(crate) fn link_address(ifindex: u32, ethertype: u16) -> LinkAddr {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: ifindex.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole `sockaddr_ll` of that length, which the function copies.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(len)) };
    address.expect("the family is AF_PACKET")
}

/// Sets a socket option that is an integer.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes from a live integer.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    Ok(Errno::result(result).map(drop)?)
}

/// `struct tpacket_stats`: since it was read last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketStatistics {
    /// Frames that came, lost ones included.
    pub(crate) packets: u32,
    /// Frames that found the socket's buffer full.
    pub(crate) drops: u32,
}

/// Reads and clears the counters of an `AF_PACKET` socket.
pub(crate) fn packet_statistics(socket: BorrowedFd<'_>) -> io::Result<PacketStatistics> {
    let mut statistics = PacketStatistics::default();
    let mut len = size_of::<PacketStatistics>() as libc::socklen_t;
    let value = (&raw mut statistics).cast();
    // SAFETY: the kernel writes at most `len` bytes, and any bytes are two integers.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &raw mut len) };
    Errno::result(result)?;
    Ok(statistics)
}

/// Gives a device of the calling thread's network namespace a one-word `ethtool` command.
pub(crate) fn ethtool(dev: &str, command: u32, data: u32) -> io::Result<()> {
    /// `SIOCETHTOOL` of linux/sockios.h.
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let mut value = [command, data];
    let mut request = libc::ifreq {
        ifr_name: name(dev),
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() },
    };
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: the request holds a terminated name and a pointer to a live `struct ethtool_value` (two words).
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    Ok(Errno::result(result).map(drop)?)
}

/// Makes a tun device (packets without link header) in the calling thread's network namespace; `tun` is /dev/net/tun.
pub(crate) fn make_tun(tun: BorrowedFd<'_>, dev: &str) -> io::Result<()> {
    /// `TUNSETIFF` of linux/if_tun.h.
    const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
    let flags = libc::ifreq {
        ifr_name: name(dev),
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as i16 },
    };
    // SAFETY: the request is a whole `struct ifreq` with a terminated name and flags.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF, &raw const flags) };
    Ok(Errno::result(result).map(drop)?)
}

/// The name of a device, cut to what fits, with a zero byte behind it.
fn name(dev: &str) -> [libc::c_char; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(dev.bytes()) {
        *to = from.cast_signed();
    }
    name
}

/// `BPF_PROG_LOAD` for a classifier of the given instructions.
pub(crate) fn load_classifier(instructions: &[u64], name: &CStr) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: c_int = 5;
    const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
    #[repr(C)]
    struct Load {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log_buf: u64,
        kern_version: u32,
        prog_flags: u32,
        prog_name: [u8; 16],
    }
    let mut prog_name = [0; 16];
    for (to, from) in prog_name[..15].iter_mut().zip(name.to_bytes()) {
        *to = *from;
    }
    let mut load = Load {
        prog_type: BPF_PROG_TYPE_SCHED_CLS,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr().addr() as u64,
        license: c"GPL".as_ptr().addr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: 0,
        prog_name,
    };
    bpf(BPF_PROG_LOAD, &mut load)
}

/// `BPF_LINK_CREATE` for a TCX hook (`attach_type`) of a device.
pub(crate) fn attach_tcx(program: BorrowedFd<'_>, ifindex: u32, attach_type: u32) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: c_int = 28;
    #[repr(C)]
    struct Create {
        prog_fd: u32,
        target_ifindex: u32,
        attach_type: u32,
        flags: u32,
        tcx: [u64; 2],
    }
    let prog_fd = program.as_raw_fd().cast_unsigned();
    let mut create = Create { prog_fd, target_ifindex: ifindex, attach_type, flags: 0, tcx: [0; 2] };
    bpf(BPF_LINK_CREATE, &mut create)
}

/// `BPF_OBJ_PIN`.
pub(crate) fn pin(object: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    const BPF_OBJ_PIN: c_int = 6;
    #[repr(C)]
    struct Pin {
        pathname: u64,
        bpf_fd: u32,
        file_flags: u32,
    }
    let path = CString::new(path)?;
    let bpf_fd = object.as_raw_fd().cast_unsigned();
    let mut pin = Pin { pathname: path.as_ptr().addr() as u64, bpf_fd, file_flags: 0 };
    Ok(bpf_call(BPF_OBJ_PIN, &mut pin).map(drop)?)
}

fn bpf<T>(command: c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    let fd = bpf_call(command, attributes)?;
    // SAFETY: the command returns a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf_call<T>(command: c_int, attributes: &mut T) -> Result<c_int, Errno> {
    let size = size_of::<T>() as u32;
    // SAFETY: the attributes are the leading part of `union bpf_attr` for this command, of the size that is given, and
    // what they point to lives until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    Errno::result(result).map(|value| value as c_int)
}
