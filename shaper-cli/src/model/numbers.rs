//! Quantities as numbers of their base unit, for the owner record.

macro_rules! as_number {
    ($($name:ident: $kind:ident, $get:ident, $what:literal;)*) => {
        $(
            pub(super) mod $name {
                use serde::{Deserialize, Deserializer, Serializer, de::Error};
                use shaper_common::units::$kind;

                pub(in crate::model) fn serialize<S: Serializer>(value: &$kind, to: S) -> Result<S::Ok, S::Error> {
                    to.serialize_u64(value.$get())
                }

                pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$kind, D::Error> {
                    let number = u64::deserialize(from)?;
                    $kind::new(number).ok_or_else(|| D::Error::custom(format!(concat!($what, " is out of range"), number)))
                }
            }
        )*
    };
}

as_number! {
    rate: Rate, bits_per_second, "a rate of {} bit/s";
    bytes: Bytes, get, "a burst of {} bytes";
    packet_rate: PacketRate, packets_per_second, "a rate of {} packets/s";
    packets: Packets, get, "a burst of {} packets";
}
