//! Rules that the data plane cannot hold.

use std::fmt;

use shaper_common::rule::{MAX_CHAIN, MAX_STEPS};

use crate::{error::Error, model::Net};

/// Why rules were refused. `Display` is the cause and [`TooMany::hint`] what to do, one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// An address in this prefix can meet so many rules.
    Rules(Net, usize),
    /// The prefixes of one side and IP version cut the addresses into so many intervals.
    Intervals(usize),
}

impl TooMany {
    /// What to do.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Rules(..) => "a range of ports, as in --port 1000-1999, takes one rule",
            Self::Intervals(_) => "write neighbouring prefixes as one that is shorter",
        }
    }

    /// The word at fault.
    fn token(&self) -> String {
        match self {
            Self::Rules(net, _) => net.to_string(),
            Self::Intervals(_) => "match".to_owned(),
        }
    }

    fn cause(&self) -> String {
        match self {
            Self::Rules(_, count) => {
                format!(
                    "its addresses can meet {count} rules that protocol and ports tell apart; the most is {MAX_CHAIN}"
                )
            }
            Self::Intervals(count) => {
                let most = (1 << MAX_STEPS) - 1;
                format!("the prefixes of one side make {count} intervals of addresses; the most is {most}")
            }
        }
    }
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.token(), self.cause())
    }
}

impl std::error::Error for TooMany {}

impl From<TooMany> for Error {
    fn from(refused: TooMany) -> Self {
        Self::usage(refused.token(), refused.cause(), refused.hint())
    }
}
