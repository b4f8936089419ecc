//! The BPF object that is built into the tool.

use aya::include_bytes_aligned;
use object::{Object as _, ObjectSection as _};
use shaper_common::abi::{VERSION, VERSION_SECTION};

use crate::error::{Error, Result};

/// The object; loaders want its headers aligned.
static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/shaper.bpf.o");

/// The object, if it follows the same contract as the tool.
pub(super) fn checked() -> Result<&'static [u8]> {
    let foreign = |what: String| Error::State { what, hint: "rebuild it with `cargo xtask bpf`, then the tool".into() };
    let file =
        object::File::parse(OBJECT).map_err(|error| foreign(format!("the built-in BPF object is damaged: {error}")))?;
    let section = file.section_by_name(VERSION_SECTION).and_then(|section| section.data().ok());
    match section.and_then(|data| data.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes)) {
        Some(VERSION) => Ok(OBJECT),
        Some(other) => {
            Err(foreign(format!("the built-in BPF object has interface version {other}, the tool has {VERSION}")))
        }
        None => Err(foreign("the built-in BPF object does not say which interface version it has".into())),
    }
}

/// A number that differs for every object (FNV-1a): an attachment of another one is updated.
pub(super) fn fingerprint() -> u64 {
    OBJECT
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |print, byte| (print ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_object_follows_the_contract() {
        super::checked().expect("the committed object is of this version");
    }
}
