//! The read-only constants of a loaded program.
//!
//! They lie in `.rodata`, which the loader fills and freezes before the verifier runs. The verifier reads a frozen
//! map's values as known numbers, follows only the branches they allow and deletes the others: an attachment pays for
//! the features it uses.

use core::ptr;

use shaper_common::{
    abi::{Keying, Overflow, Settings},
    cost::{Account, Accounting},
    key::{Per, Prefix},
    packet::Link,
    policy,
    siphash::SipKey,
};

#[unsafe(no_mangle)]
static SETTINGS: Settings = Settings {
    epoch_base: 0,
    secret: SipKey { k0: 0, k1: 0 },
    set_mask: 0,
    overhead: 0,
    mpu: 0,
    account: 0,
    per: 0,
    prefix_v4: 0,
    prefix_v6: 0,
    link: 0,
    overflow: 0,
    features: 0,
    keying: 0,
    shard_mask: 0,
    shared_counters: 0,
    reserved: 0,
};

/// Reads one field as the loader has set it, not as the compiler sees it above.
macro_rules! setting {
    ($field:ident) => {
        // SAFETY: the pointer comes from a reference to a static integer.
        unsafe { ptr::read_volatile(&SETTINGS.$field) }
    };
}

/// The settings of this program.
pub(crate) struct Loaded;

impl Loaded {
    /// See [`shaper_common::abi::Control`].
    #[inline(always)]
    pub(crate) fn epoch_base() -> u64 {
        setting!(epoch_base)
    }

    /// See [`shaper_common::abi::Settings::shard_mask`].
    #[inline(always)]
    pub(crate) fn shard_mask() -> u16 {
        setting!(shard_mask)
    }

    /// See [`shaper_common::abi::Settings::shared_counters`].
    #[inline(always)]
    pub(crate) fn shared_counters() -> bool {
        setting!(shared_counters) != 0
    }
}

impl policy::Settings for Loaded {
    #[inline(always)]
    fn link(&self) -> Link {
        if setting!(link) == Link::Ethernet as u8 { Link::Ethernet } else { Link::Bare }
    }

    #[inline(always)]
    fn per(&self) -> Per {
        Per::from_u8(setting!(per)).unwrap_or(Per::Dev)
    }

    #[inline(always)]
    fn prefix(&self) -> Prefix {
        Prefix { v4: setting!(prefix_v4), v6: setting!(prefix_v6) }
    }

    #[inline(always)]
    fn accounting(&self) -> Accounting {
        Accounting {
            account: if setting!(account) == Account::L2 as u8 { Account::L2 } else { Account::L3 },
            overhead: setting!(overhead),
            mpu: setting!(mpu),
        }
    }

    #[inline(always)]
    fn secret(&self) -> SipKey {
        setting!(secret)
    }

    #[inline(always)]
    fn set_mask(&self) -> u32 {
        setting!(set_mask)
    }

    #[inline(always)]
    fn overflow(&self) -> Overflow {
        Overflow::from_u8(setting!(overflow)).unwrap_or(Overflow::Closed)
    }

    #[inline(always)]
    fn features(&self) -> u8 {
        setting!(features)
    }

    #[inline(always)]
    fn keying(&self) -> Keying {
        Keying::from_u8(setting!(keying)).unwrap_or(Keying::ByRule)
    }
}
