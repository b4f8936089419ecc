//! Segmentation offloads of a device.

use super::{Host, syscall};

/// An offload that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The device takes TCP super-packets and (says that it) cuts them itself.
    Tso,
    /// The kernel joins received segments to super-packets.
    Gro,
}

impl Feature {
    /// `ETHTOOL_S..` of linux/ethtool.h.
    const fn command(self) -> u32 {
        match self {
            Self::Tso => 0x1f,
            Self::Gro => 0x2c,
        }
    }
}

impl Host {
    /// Switches an offload of the device.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn offload(&self, feature: Feature, on: bool) {
        self.ns.run(|| {
            if let Err(error) = syscall::ethtool(&self.dev, feature.command(), u32::from(on)) {
                panic!("{feature:?} = {on} on {}: {error}", self.dev);
            }
        });
    }

    /// Makes every packet that the host sends a single frame, already at the egress hook.
    pub fn send_single_frames(&self) {
        self.ns.ip(&format!("link set {} gso_max_segs 1", self.dev));
        self.offload(Feature::Tso, false);
    }
}
