//! The clock the programs read.

use std::{fs, time::Duration};

use nix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// Nanoseconds of `bpf_ktime_get_ns`: `CLOCK_MONOTONIC` as the kernel itself has it, whatever this process's time
/// namespace adds to it.
pub(super) fn now() -> Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_err(|errno| Error::kernel("read the clock", "this should never fail; report it")(errno.into()))?;
    let here = Duration::from(time).as_nanos() as i128;
    Ok(u64::try_from(here - offset()).unwrap_or(0))
}

/// Nanoseconds that this process's time namespace adds (time_namespaces(7)); 0 where there are none.
fn offset() -> i128 {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    offsets.lines().find_map(parse).unwrap_or(0)
}

/// Reads `monotonic <seconds> <nanoseconds>`.
fn parse(line: &str) -> Option<i128> {
    let mut words = line.split_whitespace();
    let clock = words.next()?;
    let seconds: i128 = words.next()?.parse().ok()?;
    let nanoseconds: i128 = words.next()?.parse().ok()?;
    matches!(clock, "monotonic" | "1").then_some(seconds * 1_000_000_000 + nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn offsets_are_read() {
        assert_eq!(parse("monotonic           0         0"), Some(0));
        assert_eq!(parse("monotonic  -172800  500"), Some(-172_799_999_999_500));
        assert_eq!(parse("boottime            1         0"), None);
    }
}
