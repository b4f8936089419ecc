//! Rate and burst together.

use shaper_common::units::{Burst, Bytes, Rate};

use crate::{
    error::{Error, Result},
    model::Config,
};

/// The bytes of a burst at `rate`, the default if none was given.
pub(super) fn burst(burst: Option<Burst>, rate: Rate) -> Result<Bytes> {
    let Some(burst) = burst else { return Ok(rate.default_burst()) };
    burst.at(rate).ok_or_else(|| {
        let time = match burst {
            Burst::Time(time) => time.to_string(),
            Burst::Size(bytes) => bytes.to_string(),
        };
        Error::usage(
            "--burst",
            format!("{time} at {rate} is above the largest burst"),
            format!("the largest burst is {}, here {}", Bytes::MAX, Bytes::MAX.time_at(rate)),
        )
    })
}

/// What to know about limits that do what was asked for, but hardly what was meant.
#[must_use]
pub fn warning(config: &Config) -> Option<String> {
    let Config { rate, burst, .. } = config;
    let needed = rate.tcp_burst();
    (*burst < needed).then(|| {
        format!(
            "a TCP flow cannot reach {rate} with a burst of {burst}, it needs --burst {} ({})",
            needed.spelling(),
            needed.time_at(*rate)
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::plan::example;

    #[test]
    fn a_burst_too_small_for_tcp_is_pointed_out() {
        let config = |bits, bytes| Config {
            rate: Rate::new(bits).unwrap(),
            burst: Bytes::new(bytes).unwrap(),
            burst_given: true,
            ..example::config()
        };
        assert_eq!(warning(&config(1_000_000_000, 25_000_000)), None);
        assert_eq!(
            warning(&config(1_000_000_000, 24_999_999)).unwrap(),
            "a TCP flow cannot reach 1 Gbit/s with a burst of 24999999 B, it needs --burst 25000000b (200 ms)"
        );
        assert_eq!(
            warning(&config(1_000_000, 1500)).unwrap(),
            "a TCP flow cannot reach 1 Mbit/s with a burst of 1500 B, it needs --burst 64kib (524 ms)"
        );
    }

    #[test]
    fn the_default_burst_is_enough_for_tcp() {
        for bits in [8, 1_000, 2_621_441, 1_000_000_000_000] {
            let rate = Rate::new(bits).unwrap();
            let burst = burst(None, rate).unwrap();
            assert_eq!(warning(&Config { rate, burst, ..example::config() }), None);
        }
    }

    #[test]
    fn a_burst_in_time_must_fit_at_the_rate() {
        let error = burst(Some(Burst::parse("20s").unwrap()), Rate::MAX).unwrap_err();
        assert_eq!(error.to_string(), "`--burst`: 20 s at 1 Tbit/s is above the largest burst");
        assert_eq!(error.hint(), "the largest burst is 1024 GiB, here 8.8 s");
    }
}
