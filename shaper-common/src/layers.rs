//! Several limits on one packet: it fits all of them and is charged to all, or is charged to none.

use crate::{
    abi::{RuleLimits, feature},
    atomic::{AtomicU64, Atomics},
    bucket::{self, Limit},
    cost::Cost,
    table::MoreBuckets,
    verdict::Reason,
};

/// One limit, and what the packet costs it. All of it is there even if it is off, since a verifier takes nothing that was
/// not written.
#[derive(Clone, Copy)]
struct Layer<'a> {
    on: bool,
    word: &'a AtomicU64,
    v: u64,
    burst: u64,
    cost: u64,
}

impl<'a> Layer<'a> {
    #[inline(always)]
    const fn new(on: bool, word: &'a AtomicU64, limit: &Limit, now: u64, cost: u64) -> Self {
        let v = if on { limit.clock.at(now) } else { 0 };
        Self { on, word, v, burst: limit.burst, cost }
    }

    #[inline(always)]
    fn fits<A: Atomics>(&self) -> bool {
        !self.on || bucket::offer(A::load(self.word), self.v, self.burst, self.cost).is_some()
    }

    /// Whether no bucket of this limit can ever hold the packet.
    #[inline(always)]
    const fn never_fits(&self) -> bool {
        self.on && self.cost > self.burst
    }

    #[inline(always)]
    fn refuses<A: Atomics>(&self) -> bool {
        self.on && !bucket::charge::<A>(self.word, self.v, self.burst, self.cost)
    }

    #[inline(always)]
    fn give_back<A: Atomics>(&self) {
        if self.on {
            A::add(self.word, self.cost.wrapping_neg());
        }
    }
}

/// The buckets a packet is charged to.
pub(crate) struct Buckets<'a> {
    /// Of its key: `rate`.
    pub(crate) rate: &'a AtomicU64,
    /// Of its key: `peak` and `pps`.
    pub(crate) more: &'a MoreBuckets,
    /// Of its rule.
    pub(crate) total: &'a AtomicU64,
    /// Of the device.
    pub(crate) device_total: &'a AtomicU64,
}

/// What the limits say of a packet.
pub(crate) struct Layers<'a> {
    rate: Layer<'a>,
    peak: Layer<'a>,
    pps: Layer<'a>,
    total: Layer<'a>,
    device_total: Layer<'a>,
}

impl<'a> Layers<'a> {
    /// The layers that `features` names: those of a rule with these `limits`, and that of the `device`.
    #[inline(always)]
    pub(crate) fn new(
        buckets: &Buckets<'a>,
        limits: &RuleLimits,
        device: &Limit,
        features: u8,
        now: u64,
        cost: Cost,
    ) -> Self {
        let layer = |bit, word, limit: &Limit, cost| Layer::new(features & bit != 0, word, limit, now, cost);
        Self {
            rate: layer(feature::RATE, buckets.rate, &limits.rate, cost.bytes),
            peak: layer(feature::PEAK, &buckets.more.peak_full_at, &limits.peak, cost.bytes),
            pps: layer(feature::PPS, &buckets.more.pps_full_at, &limits.pps, cost.packets),
            total: layer(feature::TOTAL, buckets.total, &limits.total, cost.bytes),
            device_total: layer(feature::DEVICE_TOTAL, buckets.device_total, device, cost.bytes),
        }
    }

    /// Whether no bucket of some layer can ever hold the packet. With a peak, `rate` may be smaller than a packet: what
    /// does not fit it has the colour yellow, and `peak` decides.
    #[inline(always)]
    pub(crate) fn is_oversize(&self) -> bool {
        let key = if self.peak.on { self.peak.never_fits() } else { self.rate.never_fits() };
        key || self.pps.never_fits() || self.total.never_fits() || self.device_total.never_fits()
    }

    /// The colour of the packet (RFC 2698, section 3, colour-blind) and more: which of the key's limits it exceeds.
    /// Nothing is charged.
    #[inline(always)]
    pub(crate) fn meter<A: Atomics>(&self) -> Reason {
        if !self.peak.fits::<A>() {
            Reason::Peak
        } else if !self.rate.fits::<A>() {
            Reason::Rate
        } else if !self.pps.fits::<A>() {
            Reason::Pps
        } else {
            Reason::Conform
        }
    }

    /// Charges a packet that conforms to all layers, or to none: then says which refused.
    #[inline(always)]
    pub(crate) fn charge<A: Atomics>(&self) -> Reason {
        if self.peak.refuses::<A>() {
            return Reason::Peak;
        }
        if self.rate.refuses::<A>() {
            self.peak.give_back::<A>();
            return Reason::Rate;
        }
        if self.pps.refuses::<A>() {
            self.peak.give_back::<A>();
            self.rate.give_back::<A>();
            return Reason::Pps;
        }
        let refused = self.charge_totals::<A>();
        if !matches!(refused, Reason::Conform) {
            self.peak.give_back::<A>();
            self.rate.give_back::<A>();
            self.pps.give_back::<A>();
        }
        refused
    }

    /// Charges a packet that passes although it exceeds `reason`: a yellow one (over `rate`) to the peak, and any to the
    /// totals; or to none. Says which refused, or that it conforms to what it was charged to.
    #[inline(always)]
    pub(crate) fn charge_excess<A: Atomics>(&self, reason: Reason) -> Reason {
        let yellow = matches!(reason, Reason::Rate);
        if yellow && self.peak.refuses::<A>() {
            return Reason::Peak;
        }
        let refused = self.charge_totals::<A>();
        if yellow && !matches!(refused, Reason::Conform) {
            self.peak.give_back::<A>();
        }
        refused
    }

    /// Charges the totals, both or none.
    #[inline(always)]
    fn charge_totals<A: Atomics>(&self) -> Reason {
        if self.total.refuses::<A>() {
            return Reason::Total;
        }
        if self.device_total.refuses::<A>() {
            self.total.give_back::<A>();
            return Reason::DeviceTotal;
        }
        Reason::Conform
    }

    /// [`bucket::heal`] for the key's buckets.
    #[inline(always)]
    pub(crate) fn heal<A: Atomics>(&self) {
        let (bytes, packets) = (bucket::DOUBT_BYTES, bucket::DOUBT_PACKETS);
        for (layer, doubt) in [(&self.rate, bytes), (&self.peak, bytes), (&self.pps, packets)] {
            if layer.on {
                bucket::heal::<A>(layer.word, layer.v, layer.burst, doubt);
            }
        }
    }
}
