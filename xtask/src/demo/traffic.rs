//! A sender and a receiver, each a thread in its namespace, and what arrives between two instants.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::{libc::linger, sys::socket};

use super::{
    interrupt,
    namespace::{CLIENT, Pair, SERVER},
};

/// Bytes of an Ethernet frame of the size that is usual everywhere, as a limit counts it.
pub(super) const FRAME: usize = 1514;
/// Of these, what a UDP datagram carries.
pub(super) const UDP_PAYLOAD: usize = FRAME - 14 - 20 - 8;
/// And a TCP segment (with the timestamps that Linux adds).
pub(super) const TCP_PAYLOAD: usize = FRAME - 14 - 20 - 32;

/// Not measured: TCP finds its pace, and the burst is used up.
const WARM_UP: Duration = Duration::from_secs(1);
pub(super) const MEASURED: Duration = Duration::from_secs(3);
/// How long a thread waits before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(100);
const READY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
pub(super) enum Load {
    /// One connection, as fast as it can.
    Tcp,
    /// One flow at a constant rate, counted as a limit does: in whole frames.
    Udp { bits_per_second: f64 },
}

/// Payload in bits per second.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) sent: f64,
    pub(super) received: f64,
}

impl Flow {
    pub(super) fn lost_percent(self) -> f64 {
        // A datagram may be sent before an instant and received after it.
        (100.0 * (1.0 - self.received / self.sent)).max(0.0)
    }
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    sent: AtomicU64,
    received: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> [u64; 2] {
        [&self.sent, &self.received].map(|bytes| bytes.load(Ordering::Relaxed))
    }
}

pub(super) fn run(pair: &Pair, load: Load) -> Result<Flow> {
    let shared = Shared::default();
    thread::scope(|scope| {
        let (listening, address) = sync_channel(1);
        let receiver = scope.spawn(|| {
            pair.server.enter()?;
            receive(load, &shared, listening)
        });
        let sender = scope.spawn(|| {
            pair.client.enter()?;
            send(load, &shared, address)
        });
        let measured = measure(&shared);
        shared.stop.store(true, Ordering::Relaxed);
        // Their errors explain why there was nothing to measure.
        for (who, thread) in [("receiver", receiver), ("sender", sender)] {
            match thread.join() {
                Ok(result) => result.with_context(|| format!("the {who} failed"))?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        measured
    })
}

fn measure(shared: &Shared) -> Result<Flow> {
    interrupt::sleep(WARM_UP)?;
    let (start, before) = (Instant::now(), shared.bytes());
    interrupt::sleep(MEASURED)?;
    let (seconds, after) = (start.elapsed().as_secs_f64(), shared.bytes());
    let rate = |i: usize| (after[i] - before[i]) as f64 * 8.0 / seconds;
    Ok(Flow { sent: rate(0), received: rate(1) })
}

fn receive(load: Load, shared: &Shared, listening: SyncSender<SocketAddrV4>) -> Result<()> {
    let mut buffer = vec![0; 1 << 18];
    match load {
        Load::Tcp => {
            let listener = TcpListener::bind((SERVER, 0))?;
            listening.send(SocketAddrV4::new(SERVER, listener.local_addr()?.port()))?;
            listener.set_nonblocking(true)?;
            let Some(mut stream) = accept(&listener, shared)? else { return Ok(()) };
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            count(shared, &shared.received, || stream.read(&mut buffer))
        }
        Load::Udp { .. } => {
            let socket = UdpSocket::bind((SERVER, 0))?;
            // So that what is lost was lost to the limit, not to a receiver that had to wait for a CPU.
            socket::setsockopt(&socket, socket::sockopt::RcvBufForce, &(8 << 20))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            listening.send(SocketAddrV4::new(SERVER, socket.local_addr()?.port()))?;
            count(shared, &shared.received, || socket.recv(&mut buffer))
        }
    }
}

/// The first connection, unless it is time to stop before.
fn accept(listener: &TcpListener, shared: &Shared) -> Result<Option<TcpStream>> {
    while !shared.stopped() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn send(load: Load, shared: &Shared, address: Receiver<SocketAddrV4>) -> Result<()> {
    let server = address.recv_timeout(READY).context("the receiver did not start")?;
    match load {
        Load::Tcp => {
            let mut stream = TcpStream::connect_timeout(&server.into(), READY)?;
            // Closed by a reset: what is still queued must not disturb the next measurement.
            socket::setsockopt(&stream, socket::sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 })?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let data = vec![0; 1 << 18];
            count(shared, &shared.sent, || stream.write(&data))
        }
        Load::Udp { bits_per_second } => {
            let socket = UdpSocket::bind((CLIENT, 0))?;
            socket.connect(server)?;
            let frames_per_second = bits_per_second / 8.0 / FRAME as f64;
            let start = Instant::now();
            let mut frames = 0;
            count(shared, &shared.sent, || {
                // The number is from the start, so a late wake-up is made up for.
                while f64::from(frames) > start.elapsed().as_secs_f64() * frames_per_second {
                    thread::sleep(Duration::from_micros(500));
                }
                frames += 1;
                socket.send(&[0; UDP_PAYLOAD])
            })
        }
    }
}

/// Repeats a transfer until it is time to stop or the other side has.
fn count(shared: &Shared, bytes: &AtomicU64, mut transfer: impl FnMut() -> std::io::Result<usize>) -> Result<()> {
    while !shared.stopped() {
        match transfer() {
            Ok(0) => break,
            Ok(n) => {
                bytes.fetch_add(n as u64, Ordering::Relaxed);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionRefused
                    if shared.stopped() =>
                {
                    break;
                }
                _ => return Err(error.into()),
            },
        }
    }
    Ok(())
}
