//! As much of route netlink as is needed: one request and its acknowledgement, dumps, and attributes.
//!
//! Numbers are in host byte order; messages and attributes are padded to four bytes (rtnetlink(7)).

use std::{
    cell::Cell,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// Bytes of `struct nlmsghdr`: length, type (at 4), flags (at 6), sequence number (at 8), port.
const HEADER: usize = 16;

/// Room for any datagram of a dump; the kernel fits them to the reader, 32 KiB at most.
const RECEIVE: usize = 1 << 16;

/// A dump that changed while it was read is read again, this often.
const DUMP_TRIES: u32 = 5;

/// A message in the making.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A request that is acknowledged; `flags` besides, such as `NLM_F_CREATE`.
    pub(crate) fn request(kind: u16, flags: libc::c_int) -> Self {
        Self::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags)
    }

    /// A request for all objects of a kind.
    pub(crate) fn dump(kind: u16) -> Self {
        Self::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_DUMP)
    }

    fn new(kind: u16, flags: libc::c_int) -> Self {
        let mut message = vec![0; HEADER];
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&(flags.cast_unsigned() as u16).to_ne_bytes());
        Self(message)
    }

    /// Appends the fixed part that follows the header.
    pub(crate) fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.pad();
    }

    /// Appends an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.0.extend_from_slice(value));
    }

    /// Appends an attribute that holds what `fill` appends.
    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        fill(self);
        let len = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finish(&mut self, sequence: u32) -> &[u8] {
        let len = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&len.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.0
    }
}

/// A route netlink socket in the network namespace of the thread that opened it.
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: Cell<u32>,
}

impl Socket {
    pub(crate) fn route() -> io::Result<Self> {
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        Ok(Self { fd, sequence: Cell::new(0) })
    }

    /// Sends a request and waits for the kernel's yes or no.
    pub(crate) fn request(&self, message: Message) -> io::Result<()> {
        self.exchange(message).map(drop)
    }

    /// The payloads (without netlink header) of all objects.
    pub(crate) fn dump(&self, message: Message) -> io::Result<Vec<Vec<u8>>> {
        for _ in 1..DUMP_TRIES {
            match self.exchange(Message(message.0.clone())) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer,
            }
        }
        self.exchange(message)
    }

    fn exchange(&self, mut message: Message) -> io::Result<Vec<Vec<u8>>> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        send(self.fd.as_raw_fd(), message.finish(sequence), MsgFlags::empty())?;
        let mut answers = Vec::new();
        let mut consistent = true;
        let mut buffer = vec![0; RECEIVE];
        loop {
            let len = match recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Err(nix::errno::Errno::EINTR) => continue,
                len => len?,
            };
            let mut datagram = &buffer[..len];
            while let Some((part, rest)) = split(datagram) {
                datagram = rest;
                if part.sequence != sequence {
                    continue;
                }
                consistent &= i32::from(part.flags) & libc::NLM_F_DUMP_INTR == 0;
                match i32::from(part.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        // Both begin with an error number: 0 or less.
                        return match field(part.payload, 0).map_or(0, i32::from_ne_bytes) {
                            0 if consistent => Ok(answers),
                            0 => Err(io::ErrorKind::Interrupted.into()),
                            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
                        };
                    }
                    _ => answers.push(part.payload.to_vec()),
                }
            }
        }
    }
}

/// A received message.
struct Part<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

/// The first message of a datagram and what follows it.
fn split(datagram: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let len = u32::from_ne_bytes(field(datagram, 0)?) as usize;
    let part = Part {
        kind: u16::from_ne_bytes(field(datagram, 4)?),
        flags: u16::from_ne_bytes(field(datagram, 6)?),
        sequence: u32::from_ne_bytes(field(datagram, 8)?),
        payload: datagram.get(HEADER..len)?,
    };
    Some((part, datagram.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

/// The `N` bytes at `offset`.
pub(crate) fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// Attributes of a message, or of an attribute that holds others.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    pub(crate) const fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The value of the first attribute of a kind.
    pub(crate) fn get(self, kind: u16) -> Option<&'a [u8]> {
        /// Bits of the type that say something about the value (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
        const FLAGS: u16 = 0xc000;
        let mut rest = self.0;
        loop {
            let len = usize::from(u16::from_ne_bytes(field(rest, 0)?));
            let value = rest.get(4..len)?;
            if u16::from_ne_bytes(field(rest, 2)?) & !FLAGS == kind {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(4)..)?;
        }
    }

    /// A number.
    pub(crate) fn number(self, kind: u16) -> Option<u32> {
        field(self.get(kind)?, 0).map(u32::from_ne_bytes)
    }

    /// A string that ends with a zero byte.
    pub(crate) fn text(self, kind: u16) -> Option<String> {
        let bytes = self.get(kind)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Attributes, Message, split};

    #[test]
    fn what_is_built_can_be_read() {
        let mut message = Message::request(7, 0);
        message.body(&[1, 2, 3, 4]);
        message.attribute(1, b"odd\0\0");
        message.nested(2, |inner| inner.attribute(3, &99u32.to_ne_bytes()));
        let bytes = message.finish(5).to_vec();
        let (part, rest) = split(&bytes).expect("whole");
        assert_eq!((part.kind, part.sequence, rest.len()), (7, 5, 0));
        let attributes = Attributes::of(&part.payload[4..]);
        assert_eq!(attributes.text(1).as_deref(), Some("odd"));
        assert_eq!(Attributes::of(attributes.get(2).expect("there")).number(3), Some(99));
        assert_eq!(attributes.get(4), None);
    }

    #[test]
    fn damaged_messages_end_the_walk() {
        assert!(split(&[]).is_none());
        assert!(split(&[0xff; 16]).is_none());
        assert!(split(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(Attributes::of(&[0, 0, 1, 0]).get(1), None);
        assert_eq!(Attributes::of(&[9, 0, 1, 0]).get(1), None);
    }
}
