//! One TCP connection that sends as much as it can.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};

use super::Path;
use crate::topology::DEADLINE;

/// What a receiver has got, and when.
#[derive(Clone, Copy, Debug)]
pub struct Goodput {
    /// Payload bytes.
    pub bytes: u64,
    /// In this time.
    pub time: Duration,
}

impl Goodput {
    /// Bits per second.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.time.as_secs_f64()
    }
}

/// Both ends of a connection.
struct Connection {
    sender: TcpStream,
    receiver: TcpStream,
}

impl Path<'_> {
    /// Sends `bytes` through one connection, and returns when it has been closed from both sides.
    ///
    /// # Panics
    ///
    /// If less arrives, or nothing for [`DEADLINE`].
    pub fn tcp_transfer(&self, v6: bool, bytes: u64) {
        let Connection { mut sender, mut receiver } = self.connect(v6);
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                let mut left = bytes;
                while left > 0 {
                    let chunk = &CHUNK[..CHUNK.len().min(left as usize)];
                    sender.write_all(chunk).expect("send");
                    left -= chunk.len() as u64;
                }
                sender.shutdown(Shutdown::Write).expect("close the sending side");
            });
            read_until(&mut receiver, None)
        });
        assert_eq!(received, bytes, "bytes that arrived");
        drop(receiver);
        let end = sender.read(&mut [0]).expect("the receiver closes");
        assert_eq!(end, 0, "the receiver sends nothing");
    }

    /// Sends as much as goes through in `warm_up + window`, and says what arrived in the window.
    ///
    /// # Panics
    ///
    /// If nothing arrives for [`DEADLINE`].
    #[must_use]
    pub fn tcp_goodput(&self, v6: bool, warm_up: Duration, window: Duration) -> Goodput {
        let Connection { mut sender, mut receiver } = self.connect(v6);
        thread::scope(|scope| {
            let stop = sender.try_clone().expect("another handle on the sender");
            scope.spawn(move || while sender.write_all(&CHUNK).is_ok() {});
            read_until(&mut receiver, Some(Instant::now() + warm_up));
            let start = Instant::now();
            let bytes = read_until(&mut receiver, Some(start + window));
            let time = start.elapsed();
            stop.shutdown(Shutdown::Both).expect("stop the sender");
            Goodput { bytes, time }
        })
    }

    fn connect(&self, v6: bool) -> Connection {
        let listener = self.to.ns.run(|| TcpListener::bind((self.to.address(v6), 0))).expect("listen");
        let address = listener.local_addr().expect("the listener's address");
        let sender = self.from.ns.run(|| TcpStream::connect_timeout(&address, DEADLINE)).expect("connect");
        let (receiver, _) = listener.accept().expect("accept");
        // The loss-based algorithm that every kernel has; others hide what a limiter does to TCP.
        setsockopt(&sender, TcpCongestion, &"cubic".into()).expect("cubic");
        receiver.set_read_timeout(Some(DEADLINE)).expect("a read timeout");
        sender.set_read_timeout(Some(DEADLINE)).expect("a read timeout");
        sender.set_write_timeout(Some(DEADLINE)).expect("a write timeout");
        Connection { sender, receiver }
    }
}

static CHUNK: [u8; 1 << 16] = [0x5a; 1 << 16];

/// Reads to the end of the stream, or to a point in time; the number of bytes.
fn read_until(stream: &mut TcpStream, end: Option<Instant>) -> u64 {
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    while end.is_none_or(|end| Instant::now() < end) {
        match stream.read(&mut buffer).expect("receive") {
            0 => break,
            len => bytes += len as u64,
        }
    }
    bytes
}
