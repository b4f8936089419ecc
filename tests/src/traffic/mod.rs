//! Traffic that tests send, and independent counts of what arrives.
//!
//! Nothing here asks the tool under test. What passed is counted where it arrives, what was sent where it leaves.

mod arrivals;
mod frame;
mod inject;
mod path;
mod tcp;
mod udp;

pub use arrivals::{Arrivals, ethertype};
pub use frame::UdpFrame;
pub use inject::{Flood, Injector, Sent};
pub use path::{Direction, Path};
pub use tcp::Goodput;
pub use udp::UdpPair;
