//! Network namespaces and devices, and the netlink socket that asks about them.

mod device;
mod namespace;
pub(crate) mod netlink;

pub use device::{device, devices, named};
pub use namespace::Namespace;
