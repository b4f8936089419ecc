//! Reading the line that each test binary ends with.

use std::{fmt, ops::AddAssign};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Marked `#[ignore]`.
    pub(crate) skipped: u64,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    pub(super) fn of_result_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| {
            let mut parts = counts.split(';').filter_map(|part| part.trim().split_once(' '));
            parts.find(|(_, name)| *name == what).and_then(|(number, _)| number.parse().ok())
        };
        Some(Self { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
    }

    pub(super) const fn ran(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.05s";
        assert_eq!(Counts::of_result_line(line), Some(Counts { passed: 12, failed: 3, skipped: 1 }));
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "running 3 tests",
            "test result",
            "test result: ok. none",
            "said: test result: ok. 1 passed; 0 failed; 0 ignored",
        ] {
            assert_eq!(Counts::of_result_line(line), None, "{line}");
        }
    }

    #[test]
    fn counts_add_up_to_the_closing_line() {
        let mut counts = Counts { passed: 1, failed: 0, skipped: 2 };
        counts += Counts { passed: 10, failed: 4, skipped: 0 };
        assert_eq!((counts.ran(), counts.to_string().as_str()), (15, "11 passed, 4 failed, 2 skipped"));
    }
}
