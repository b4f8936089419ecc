//! The maps of an attachment, opened from their pins and compared with the contract before anything is read.

use shaper_common::abi::{
    Control, OwnerRecord, RuleCounters, RuleLimits, RuleState,
    map::{CONTROL, COUNTERS, FLOWS, OWNER, RULES, STATES},
};
use shaper_common::table::FlowSet;

use super::{
    pin,
    sys::{Kind, Map, MapInfo},
};
use crate::{
    error::{Error, Result},
    state::Directory,
};

/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// `BPF_MAP_TYPE_PERCPU_ARRAY`.
const PER_CPU_ARRAY: u32 = 6;
/// `BPF_F_MMAPABLE`.
const MAPPABLE: u32 = 1 << 10;

/// Names of all maps of an attachment, for the loader.
pub(super) const NAMES: [&str; 6] = [FLOWS, CONTROL, RULES, STATES, COUNTERS, OWNER];

/// What a map must be. `None` entries: any power of two.
struct Layout {
    name: &'static str,
    kind: u32,
    value_size: usize,
    entries: Option<u32>,
    flags: u32,
}

const fn array<T>(name: &'static str, entries: u32) -> Layout {
    Layout { name, kind: ARRAY, value_size: size_of::<T>(), entries: Some(entries), flags: 0 }
}

/// The open maps of an attachment.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) flows: Map,
    pub(super) control: Map,
    pub(super) rules: Map,
    pub(super) counters: Map,
    pub(super) owner: Map,
}

impl Maps {
    /// Opens the maps of a directory; the flow table that is to replace the present one, if `next_flows`.
    pub(super) fn open(directory: &Directory, next_flows: bool) -> Result<Self> {
        let flows =
            Layout { name: FLOWS, kind: ARRAY, value_size: size_of::<FlowSet>(), entries: None, flags: MAPPABLE };
        let counters = Layout { kind: PER_CPU_ARRAY, ..array::<RuleCounters>(COUNTERS, 1) };
        // Opened for its check alone: the programs use it, and a new program is loaded with it.
        open(directory, &array::<RuleState>(STATES, 1), false)?;
        Ok(Self {
            flows: open(directory, &flows, next_flows)?,
            control: open(directory, &array::<Control>(CONTROL, 1), false)?,
            rules: open(directory, &array::<RuleLimits>(RULES, 2), false)?,
            counters: open(directory, &counters, false)?,
            owner: open(directory, &array::<OwnerRecord>(OWNER, 2), false)?,
        })
    }
}

fn open(directory: &Directory, layout: &Layout, next: bool) -> Result<Map> {
    let path = if next { directory.next(layout.name) } else { directory.entry(layout.name) };
    let fd = pin::open(&path, Kind::Map)?.ok_or_else(|| pin::unusable(&path, "is missing"))?;
    let map = Map::new(fd).map_err(Error::io(format!("ask about {}", path.display())))?;
    layout.admit(map.info()).map_err(|what| pin::unusable(&path, &what))?;
    Ok(map)
}

impl Layout {
    fn admit(&self, info: &MapInfo) -> Result<(), String> {
        let expected = |what: &str, found: u32, wanted: u32| {
            (found == wanted).then_some(()).ok_or_else(|| format!("has {what} {found}, not {wanted}"))
        };
        expected("map type", info.kind, self.kind)?;
        expected("flags", info.flags, self.flags)?;
        expected("key size", info.key_size, 4)?;
        expected("value size", info.value_size, self.value_size as u32)?;
        match self.entries {
            Some(entries) => expected("entries", info.max_entries, entries),
            None if info.max_entries.is_power_of_two() => Ok(()),
            None => Err(format!("has {} entries, not a power of two", info.max_entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_layout_is_refused() {
        let layout = array::<Control>(CONTROL, 1);
        let good = MapInfo { kind: ARRAY, key_size: 4, value_size: 8, max_entries: 1, ..MapInfo::default() };
        assert_eq!(layout.admit(&good), Ok(()));
        for bad in [
            MapInfo { kind: PER_CPU_ARRAY, ..good },
            MapInfo { key_size: 8, ..good },
            MapInfo { value_size: 16, ..good },
            MapInfo { max_entries: 2, ..good },
            MapInfo { flags: MAPPABLE, ..good },
        ] {
            assert!(layout.admit(&bad).is_err(), "{bad:?}");
        }
    }
}
