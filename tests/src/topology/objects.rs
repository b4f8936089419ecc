//! The BPF programs behind a device's hooks, and whether the kernel still has them.

use aya::{
    maps::loaded_maps,
    programs::{SchedClassifier, loaded_programs, tc::TcAttachType},
};
use serde_json::Value;

use super::Host;

/// Kernel ids of the programs on a device's hooks and of the maps they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Program ids.
    pub programs: Vec<u32>,
    /// Map ids.
    pub maps: Vec<u32>,
}

impl Host {
    /// What runs at the device's TCX and clsact hooks, both directions.
    ///
    /// # Panics
    ///
    /// If the kernel does not tell.
    #[must_use]
    pub fn objects(&self) -> Objects {
        let mut programs = self.tcx_programs();
        programs.extend(self.clsact_programs());
        let maps = loaded_programs()
            .filter_map(Result::ok)
            .filter(|program| programs.contains(&program.id()))
            .flat_map(|program| program.map_ids().expect("map ids").unwrap_or_default())
            .collect();
        Objects { programs, maps }
    }

    fn tcx_programs(&self) -> Vec<u32> {
        let query = |direction| SchedClassifier::query_tcx(&self.dev, direction).expect("query TCX").1;
        let programs = self.ns.run(|| [TcAttachType::Ingress, TcAttachType::Egress].map(query));
        programs.into_iter().flatten().map(|program| program.id()).collect()
    }

    fn clsact_programs(&self) -> Vec<u32> {
        let ids = ["ingress", "egress"].into_iter().flat_map(|direction| {
            let json = self.ns.tc(&format!("-j filter show dev {} {direction}", self.dev));
            let filters: Vec<Value> = serde_json::from_str(&json).expect("tc -j filter show");
            filters.into_iter().filter_map(|filter| filter["options"]["prog"]["id"].as_u64())
        });
        ids.map(|id| u32::try_from(id).expect("a program id")).collect()
    }
}

impl Objects {
    /// Those that the kernel still has.
    #[must_use]
    pub fn alive(&self) -> Self {
        let programs: Vec<u32> = loaded_programs().filter_map(Result::ok).map(|program| program.id()).collect();
        let maps: Vec<u32> = loaded_maps().filter_map(Result::ok).map(|map| map.id()).collect();
        Self {
            programs: self.programs.iter().copied().filter(|id| programs.contains(id)).collect(),
            maps: self.maps.iter().copied().filter(|id| maps.contains(id)).collect(),
        }
    }

    /// True if there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.maps.is_empty()
    }
}
