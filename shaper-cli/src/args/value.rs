//! Readers of single values.

use std::{fmt::Display, str::FromStr};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use shaper_common::{
    abi::Overflow,
    units::{Burst, PacketBurst, PacketRate, Rate, Share},
};

use crate::{
    error::Invalid,
    model::{Config, OVERFLOWS, overflow_name, overflow_named},
};

pub(crate) fn rate(text: &str) -> Result<Rate, Invalid> {
    Rate::parse(text).map_err(Invalid::from)
}

pub(crate) fn burst(text: &str) -> Result<Burst, Invalid> {
    Burst::parse(text).map_err(Invalid::from)
}

pub(crate) fn packet_rate(text: &str) -> Result<PacketRate, Invalid> {
    PacketRate::parse(text).map_err(Invalid::from)
}

pub(crate) fn packet_burst(text: &str) -> Result<PacketBurst, Invalid> {
    PacketBurst::parse(text).map_err(Invalid::from)
}

pub(crate) fn share(text: &str) -> Result<Share, Invalid> {
    Share::parse(text).map_err(Invalid::from)
}

pub(crate) fn overflow() -> impl TypedValueParser<Value = Overflow> {
    PossibleValuesParser::new(OVERFLOWS.map(overflow_name)).try_map(|name| {
        overflow_named(&name).ok_or_else(|| Invalid::new(format!("`{name}` is not a policy"), "shared is the default"))
    })
}

/// One of the words of `T`, for where clap does not read it.
pub(crate) fn choice<T: ValueEnum>(text: &str) -> Result<T, Invalid> {
    T::from_str(text, false).map_err(|_same| {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let values: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        not_one_of(text, &values)
    })
}

/// A word that is none of `values`.
pub(crate) fn not_one_of<T: AsRef<str>>(text: &str, values: &[T]) -> Invalid {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    Invalid::new(format!("`{text}` is not one of its values"), format!("values: {}", values.join(", ")))
}

pub(crate) fn max_flows(text: &str) -> Result<u32, Invalid> {
    number(1_u32, Config::MOST_FLOWS)(text)
}

pub(crate) fn overhead(text: &str) -> Result<i32, Invalid> {
    number(-64_i32, 256)(text)
}

pub(crate) fn mpu(text: &str) -> Result<u32, Invalid> {
    number(0_u32, 256)(text)
}

/// A whole number from `least` to `most`, without `+`.
pub(crate) fn number<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, Invalid> + Clone
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
