//! Readers of single values.

use std::{fmt::Display, str::FromStr};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use shaper_common::{
    abi::Overflow,
    units::{Burst, PacketBurst, PacketRate, Rate, Share},
};

use crate::{
    error::Invalid,
    model::{OVERFLOWS, overflow_name, overflow_named},
};

pub(super) fn rate(text: &str) -> Result<Rate, Invalid> {
    Rate::parse(text).map_err(Invalid::from)
}

pub(super) fn burst(text: &str) -> Result<Burst, Invalid> {
    Burst::parse(text).map_err(Invalid::from)
}

pub(super) fn packet_rate(text: &str) -> Result<PacketRate, Invalid> {
    PacketRate::parse(text).map_err(Invalid::from)
}

pub(super) fn packet_burst(text: &str) -> Result<PacketBurst, Invalid> {
    PacketBurst::parse(text).map_err(Invalid::from)
}

pub(super) fn share(text: &str) -> Result<Share, Invalid> {
    Share::parse(text).map_err(Invalid::from)
}

pub(super) fn overflow() -> impl TypedValueParser<Value = Overflow> {
    PossibleValuesParser::new(OVERFLOWS.map(overflow_name)).try_map(|name| {
        overflow_named(&name).ok_or_else(|| Invalid::new(format!("`{name}` is not a policy"), "shared is the default"))
    })
}

/// A whole number from `least` to `most`, without `+`.
pub(super) fn number<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, Invalid> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let number = if text.starts_with('+') { None } else { text.parse().ok() };
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            Invalid::new(format!("`{text}` is not a whole number in range"), format!("write {least} to {most}"))
        })
    }
}
