//! What happened to a packet, and why. Every packet has exactly one verdict and one reason, and both are counted.

/// What happens to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on to the next program on the hook.
    Pass,
    /// It ends here.
    Drop,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet got its verdict. The number is the index of its counter.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// All of them, in the order of their counters.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that people and JSON see.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// It fitted every limit.
    Conform = "conform",
    /// Its key's bucket had too few bytes.
    Rate = "rate",
    /// Its key's bucket had too few packets.
    Pps = "pps",
    /// It exceeded the peak rate.
    Peak = "peak",
    /// Its rule's total was used up.
    Total = "total",
    /// The attachment's total was used up.
    DeviceTotal = "device_total",
    /// It is larger than the largest burst that applies to it: it never fits.
    Oversize = "oversize",
    /// Its set of the flow table held eight other flows, all in debt.
    Untracked = "untracked",
    /// Its rule blocks.
    Blocked = "blocked",
    /// It would have waited longer than the longest delay.
    Delay = "delay",
    /// Never limited: ARP, neighbour discovery, everything that is not IP.
    Exempt = "exempt",
}

impl Reason {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();
}

/// What happens to a packet above a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It is dropped.
    #[default]
    Drop,
    /// It passes and is only counted.
    Pass,
    /// It passes with this differentiated services code point, 0 ..= 63 (RFC 2474); its ECN bits stay.
    Dscp(u8),
    /// It passes with "congestion experienced" if its transport is ECN-capable (RFC 3168), else it is dropped.
    Ecn,
    /// It passes with this firewall mark (`skb->mark`).
    Mark(u32),
}
