//! Frames put on the wire one by one, an exact number of them.
//!
//! Towards the ingress hook under test frames leave through the sender's device without its queueing layer, in batches;
//! a full receive queue is noticed (`ENOBUFS`) and the frame sent again, so that each is seen exactly once. Through the
//! egress hook under test every frame is one call: `ENOBUFS` there says that the hook dropped it.

use std::{
    io::IoSlice,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    sys::socket::{AddressFamily, MsgFlags, MultiHeaders, SockFlag, SockType, bind, send, sendmmsg, socket},
    unistd::Pid,
};

use super::{Arrivals, Direction, Path, UdpFrame, ethertype};
use crate::topology::{DEADLINE, apart, link_address, set_option};

/// Frames of one `sendmmsg`.
const BATCH: usize = 64;

/// A source of frames at the start of a path.
#[derive(Debug)]
pub struct Injector<'a> {
    path: Path<'a>,
    socket: OwnedFd,
    fences: Arrivals,
    cpu: usize,
}

/// What became of frames at the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that were sent.
    pub frames: u64,
    /// Those of them that the sender's own egress hook dropped.
    pub refused: u64,
}

/// Frames sent as fast as possible for a while.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// What was sent.
    pub sent: Sent,
    /// Before the first frame.
    pub start: Instant,
    /// After the last one was received.
    pub end: Instant,
}

impl<'a> Injector<'a> {
    pub(super) fn new(path: Path<'a>) -> Self {
        let ifindex = path.from.ifindex();
        let socket = path.from.ns.run(|| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).expect("a packet socket");
            // Protocol 0: this socket sends and never receives.
            bind(socket.as_raw_fd(), &link_address(ifindex, 0)).expect("bind the packet socket");
            if path.direction == Direction::Ingress {
                set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
                    .expect("PACKET_QDISC_BYPASS");
            }
            socket
        });
        let fences = path.arrivals(ethertype::EXPERIMENTAL);
        Self { path, socket, fences, cpu: 0 }
    }

    /// Sends from this CPU and no other (0 if not called).
    #[must_use]
    pub fn on_cpu(self, cpu: usize) -> Self {
        Self { cpu, ..self }
    }

    /// Sends `count` equal frames and waits until the receiving device has seen them all.
    ///
    /// # Panics
    ///
    /// If a frame cannot be sent.
    pub fn send(&self, frame: &UdpFrame, count: usize) -> Sent {
        let bytes = frame.bytes();
        self.send_all(&vec![&bytes[..]; count])
    }

    /// Sends these frames and waits until the receiving device has seen them all.
    ///
    /// One frame that is not IP follows them (from the same CPU, so it cannot overtake); the wait is for that one.
    ///
    /// # Panics
    ///
    /// If a frame cannot be sent.
    pub fn send_all(&self, frames: &[&[u8]]) -> Sent {
        pinned(self.cpu, || {
            let sent = self.put(frames);
            self.fence();
            sent
        })
    }

    /// Sends equal frames as fast as possible for `time`.
    ///
    /// # Panics
    ///
    /// If a frame cannot be sent.
    pub fn flood(&self, frame: &UdpFrame, time: Duration) -> Flood {
        let bytes = frame.bytes();
        let batch = [&bytes[..]; BATCH];
        pinned(self.cpu, || {
            let start = Instant::now();
            let mut sent = Sent::default();
            while start.elapsed() < time {
                sent = sent.and(self.put(&batch));
            }
            self.fence();
            Flood { sent, start, end: Instant::now() }
        })
    }

    fn put(&self, frames: &[&[u8]]) -> Sent {
        match self.path.direction {
            Direction::Ingress => self.put_batches(frames),
            Direction::Egress => self.put_singly(frames),
        }
    }

    fn put_batches(&self, frames: &[&[u8]]) -> Sent {
        let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
        let end = Instant::now() + DEADLINE;
        let mut done = 0;
        while done < frames.len() {
            let batch: Vec<[IoSlice<'_>; 1]> =
                frames[done..].iter().take(BATCH).map(|frame| [IoSlice::new(frame)]).collect();
            let addresses = vec![None; batch.len()];
            match sendmmsg(self.socket.as_raw_fd(), &mut headers, &batch, addresses, [], MsgFlags::empty()) {
                Ok(results) => done += results.count(),
                Err(Errno::ENOBUFS) => {
                    assert!(Instant::now() < end, "the receive queue of {} stays full", self.path.to.dev);
                    thread::yield_now();
                }
                Err(error) => panic!("inject on {}: {error}", self.path.from.dev),
            }
        }
        Sent { frames: done as u64, refused: 0 }
    }

    fn put_singly(&self, frames: &[&[u8]]) -> Sent {
        let mut refused = 0;
        for frame in frames {
            match send(self.socket.as_raw_fd(), frame, MsgFlags::empty()) {
                Ok(len) => assert_eq!(len, frame.len()),
                Err(Errno::ENOBUFS) => refused += 1,
                Err(error) => panic!("inject on {}: {error}", self.path.from.dev),
            }
        }
        Sent { frames: frames.len() as u64, refused }
    }

    /// Sends a frame that no limiter limits, and waits for it at the other end.
    fn fence(&self) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&self.path.to.mac);
        frame[6..12].copy_from_slice(&self.path.from.mac);
        frame[12..14].copy_from_slice(&ethertype::EXPERIMENTAL.to_be_bytes());
        frame[14..18].copy_from_slice(&number.to_be_bytes());
        let sent = self.put(&[&frame]);
        assert_eq!(sent.refused, 0, "a frame that is not IP was dropped at {}", self.path.from.dev);
        self.fences.wait_for("the frame behind the injected ones", |arrived| arrived == frame);
    }
}

/// Runs `work` on a thread that stays on one CPU.
fn pinned<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> T {
    let mut cpus = CpuSet::new();
    cpus.set(cpu).expect("a CPU number");
    apart(|| {
        sched_setaffinity(Pid::from_raw(0), &cpus).expect("the CPU exists");
        work()
    })
}

impl Sent {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { frames: self.frames + other.frames, refused: self.refused + other.refused }
    }
}
