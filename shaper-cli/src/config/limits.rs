//! The keys that attachments and rules share: their limits.

use super::key::{Key, put};
use crate::{
    args::{LimitArgs, value},
    model::action,
};

/// Each option of [`LimitArgs`].
pub(super) const LIMITS: &[Key<LimitArgs>] = &[
    Key::number("rate", "`\"100mbit\"`", |limits, text| put(&mut limits.rate, value::rate(text))),
    Key::number("burst", "`\"64kb\"` or `\"250ms\"`", |limits, text| put(&mut limits.burst, value::burst(text))),
    Key::number("pps", "`500` or `\"10kpps\"`", |limits, text| put(&mut limits.pps, value::packet_rate(text))),
    Key::number("pps-burst", "`100` or `\"250ms\"`", |limits, text| {
        put(&mut limits.pps_burst, value::packet_burst(text))
    }),
    Key::number("peak", "`\"200mbit\"`", |limits, text| put(&mut limits.peak, value::rate(text))),
    Key::number("peak-burst", "`\"64kb\"` or `\"250ms\"`", |limits, text| {
        put(&mut limits.peak_burst, value::burst(text))
    }),
    Key::text("soft", "`\"10%\"`", |limits, text| put(&mut limits.soft, value::share(text))),
    Key::number("total", "`\"1gbit\"`", |limits, text| put(&mut limits.total, value::rate(text))),
    Key::number("total-burst", "`\"64kb\"` or `\"250ms\"`", |limits, text| {
        put(&mut limits.total_burst, value::burst(text))
    }),
    Key::text("exceed", "`\"drop\"`", |limits, text| put(&mut limits.exceed, action::parse(text))),
    Key::text("violate", "`\"drop\"`", |limits, text| put(&mut limits.violate, action::parse(text))),
    Key::flag("block", |limits, _| {
        limits.block = true;
        Ok(())
    }),
    Key::flag("unlimited", |limits, _| {
        limits.unlimited = true;
        Ok(())
    }),
];

/// Keys that no limit goes with, or few.
pub(super) const ALONE: &[&str] = &["block", "unlimited"];

/// Keys each of which limits something.
pub(super) const LIMITING: &[&str] = &["rate", "pps", "total", "block", "unlimited"];
