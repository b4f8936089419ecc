//! Several limits on one packet: it fits all of them and is charged to all, or is charged to none.

use crate::{
    abi::{RuleLimits, feature},
    atomic::{AtomicU64, Atomics},
    bucket::{self, Limit},
    cost::Cost,
    table::MoreBuckets,
    verdict::Reason,
};

/// One limit, and what the packet costs it.
#[derive(Clone, Copy)]
struct Layer<'a> {
    word: &'a AtomicU64,
    v: u64,
    burst: u64,
    cost: u64,
}

impl<'a> Layer<'a> {
    #[inline(always)]
    const fn new(word: &'a AtomicU64, limit: &Limit, now: u64, cost: u64) -> Self {
        Self { word, v: limit.clock.at(now), burst: limit.burst, cost }
    }

    #[inline(always)]
    fn fits<A: Atomics>(&self) -> bool {
        bucket::offer(A::load(self.word), self.v, self.burst, self.cost).is_some()
    }

    #[inline(always)]
    fn take<A: Atomics>(&self) -> bool {
        bucket::charge::<A>(self.word, self.v, self.burst, self.cost)
    }
}

/// The buckets a packet is charged to.
pub(crate) struct Buckets<'a> {
    /// Of its key: `rate`.
    pub(crate) rate: &'a AtomicU64,
    /// Of its key: `peak` and `pps`.
    pub(crate) more: &'a MoreBuckets,
    /// Of the device.
    pub(crate) total: &'a AtomicU64,
}

/// What the limits say of a packet.
pub(crate) struct Layers<'a> {
    rate: Option<Layer<'a>>,
    peak: Option<Layer<'a>>,
    pps: Option<Layer<'a>>,
    total: Option<Layer<'a>>,
}

impl<'a> Layers<'a> {
    /// The layers that `features` names.
    #[inline(always)]
    pub(crate) fn new(buckets: &Buckets<'a>, limits: &RuleLimits, features: u8, now: u64, cost: Cost) -> Self {
        let layer = |bit, word, limit: &Limit, cost| (features & bit != 0).then(|| Layer::new(word, limit, now, cost));
        Self {
            rate: layer(feature::RATE, buckets.rate, &limits.rate, cost.bytes),
            peak: layer(feature::PEAK, &buckets.more.peak_full_at, &limits.peak, cost.bytes),
            pps: layer(feature::PPS, &buckets.more.pps_full_at, &limits.pps, cost.packets),
            total: layer(feature::DEVICE_TOTAL, buckets.total, &limits.device_total, cost.bytes),
        }
    }

    /// Whether no bucket of some layer can ever hold the packet. With a peak, `rate` may be smaller than a packet: what
    /// does not fit it has the colour yellow, and `peak` decides.
    #[inline(always)]
    pub(crate) fn is_oversize(&self) -> bool {
        let never = |layer: &Option<Layer<'_>>| layer.as_ref().is_some_and(|layer| layer.cost > layer.burst);
        let key = if self.peak.is_some() { never(&self.peak) } else { never(&self.rate) };
        key || never(&self.pps) || never(&self.total)
    }

    /// The colour of the packet (RFC 2698, section 3, colour-blind) and more: which of the key's limits it exceeds.
    /// Nothing is charged.
    #[inline(always)]
    pub(crate) fn meter<A: Atomics>(&self) -> Reason {
        for (layer, reason) in [(&self.peak, Reason::Peak), (&self.rate, Reason::Rate), (&self.pps, Reason::Pps)] {
            if let Some(layer) = layer
                && !layer.fits::<A>()
            {
                return reason;
            }
        }
        Reason::Conform
    }

    /// Charges a packet that conforms to all layers, or to none: then says which refused.
    #[inline(always)]
    pub(crate) fn charge<A: Atomics>(&self) -> Result<(), Reason> {
        if refuses::<A>(&self.peak) {
            return Err(Reason::Peak);
        }
        if refuses::<A>(&self.rate) {
            give_back::<A>(&self.peak);
            return Err(Reason::Rate);
        }
        if refuses::<A>(&self.pps) {
            give_back::<A>(&self.peak);
            give_back::<A>(&self.rate);
            return Err(Reason::Pps);
        }
        if refuses::<A>(&self.total) {
            give_back::<A>(&self.peak);
            give_back::<A>(&self.rate);
            give_back::<A>(&self.pps);
            return Err(Reason::DeviceTotal);
        }
        Ok(())
    }

    /// Charges a packet that passes although it exceeds `reason`: a yellow one (over `rate`) to the peak, and any to the
    /// total; or to none.
    #[inline(always)]
    pub(crate) fn charge_excess<A: Atomics>(&self, reason: Reason) -> Result<(), Reason> {
        let yellow = matches!(reason, Reason::Rate);
        if yellow && refuses::<A>(&self.peak) {
            return Err(Reason::Peak);
        }
        if refuses::<A>(&self.total) {
            if yellow {
                give_back::<A>(&self.peak);
            }
            return Err(Reason::DeviceTotal);
        }
        Ok(())
    }
}

#[inline(always)]
fn refuses<A: Atomics>(layer: &Option<Layer<'_>>) -> bool {
    layer.as_ref().is_some_and(|layer| !layer.take::<A>())
}

#[inline(always)]
fn give_back<A: Atomics>(layer: &Option<Layer<'_>>) {
    if let Some(layer) = layer {
        A::add(layer.word, layer.cost.wrapping_neg());
    }
}
