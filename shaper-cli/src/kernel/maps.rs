//! The maps of an attachment, opened from their pins and compared with the contract before anything is read.

use shaper_common::{
    abi::{
        Control, OwnerRecord, RuleCounters, RuleLimits, RuleState, Settings,
        map::{BOUNDARIES, CONTROL, COUNTERS, FLOWS, INDEX, LINKS, OWNER, RULES, STATES, TEXT},
    },
    rule::{Boundary, Index, Link},
    table::FlowSet,
};

use super::{
    pin,
    sys::{Kind, Map, MapInfo},
};
use crate::{
    error::{Error, Result},
    state::{Directory, Room},
};

/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// `BPF_F_MMAPABLE`.
const MAPPABLE: u32 = 1 << 10;

/// Those that may be replaced by larger ones.
pub(super) const REPLACEABLE: [&str; 7] = [FLOWS, RULES, STATES, COUNTERS, BOUNDARIES, LINKS, TEXT];

/// Elements of the maps whose size depends on the rules.
pub(super) fn sizes(room: &Room) -> [(&'static str, u32); 6] {
    // A room that no map can have is that of a record that somebody has made up.
    let twice = |n: u32| n.saturating_mul(2);
    [
        (RULES, twice(room.rules)),
        (STATES, room.rules),
        (COUNTERS, room.rules.saturating_mul(Settings::counters_of(room.shard_mask))),
        (BOUNDARIES, twice(room.boundaries)),
        (LINKS, twice(room.links)),
        (TEXT, twice(room.text)),
    ]
}

/// What a map must be. `None` entries: any number.
struct Layout {
    name: &'static str,
    value_size: usize,
    entries: Option<u32>,
    flags: u32,
}

const fn array<T>(name: &'static str, entries: u32) -> Layout {
    Layout { name, value_size: size_of::<T>(), entries: Some(entries), flags: 0 }
}

/// One that may be mapped into memory; how many elements it has is for the record to say, see [`Maps::fit`].
const fn mappable<T>(name: &'static str) -> Layout {
    Layout { name, value_size: size_of::<T>(), entries: None, flags: MAPPABLE }
}

/// The open maps of an attachment.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) flows: Map,
    pub(super) control: Map,
    pub(super) rules: Map,
    pub(super) states: Map,
    pub(super) counters: Map,
    pub(super) index: Map,
    pub(super) boundaries: Map,
    pub(super) links: Map,
    pub(super) owner: Map,
    pub(super) text: Map,
}

impl Maps {
    /// Opens the maps of a directory; where there is one that is to replace the present one, that, if `next`.
    pub(super) fn open(directory: &Directory, next: bool) -> Result<Self> {
        let open = |layout| open(directory, &layout, next);
        Ok(Self {
            flows: open(mappable::<FlowSet>(FLOWS))?,
            control: open(array::<Control>(CONTROL, 1))?,
            rules: open(mappable::<RuleLimits>(RULES))?,
            states: open(mappable::<RuleState>(STATES))?,
            counters: open(mappable::<RuleCounters>(COUNTERS))?,
            index: open(array::<Index>(INDEX, 2))?,
            boundaries: open(mappable::<Boundary>(BOUNDARIES))?,
            links: open(mappable::<Link>(LINKS))?,
            owner: open(array::<OwnerRecord>(OWNER, 2))?,
            text: open(mappable::<u64>(TEXT))?,
        })
    }

    /// Compares the sizes with what the record of their program says.
    pub(super) fn fit(&self, room: &Room, sets: u32) -> Result<(), String> {
        let maps = [&self.rules, &self.states, &self.counters, &self.boundaries, &self.links, &self.text];
        let wanted = sizes(room).into_iter().zip(maps).chain([((FLOWS, sets), &self.flows)]);
        for ((name, wanted), map) in wanted {
            let found = map.info().max_entries;
            if found != wanted {
                return Err(format!("has a {name} of {found} elements, not {wanted}"));
            }
        }
        Ok(())
    }
}

fn open(directory: &Directory, layout: &Layout, next: bool) -> Result<Map> {
    let next = next && REPLACEABLE.contains(&layout.name) && directory.has(&directory.next(layout.name))?;
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
        expected("map type", info.kind, ARRAY)?;
        expected("flags", info.flags, self.flags)?;
        expected("key size", info.key_size, 4)?;
        expected("value size", info.value_size, self.value_size as u32)?;
        match self.entries {
            Some(entries) => expected("entries", info.max_entries, entries),
            None => Ok(()),
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
            MapInfo { kind: ARRAY + 1, ..good },
            MapInfo { key_size: 8, ..good },
            MapInfo { value_size: 16, ..good },
            MapInfo { max_entries: 2, ..good },
            MapInfo { flags: MAPPABLE, ..good },
        ] {
            assert!(layout.admit(&bad).is_err(), "{bad:?}");
        }
    }
}
