//! A limit on a device as a guard value.

use std::thread;

use super::{Explanation, Flow, Ran, RuleStats, Tool};
use crate::{
    topology::contained,
    traffic::{Direction, UdpFrame},
};

/// A limit on the device of a host. Dropping it detaches; if the test has failed, it shows the state first.
#[derive(Debug)]
pub struct Attached<'a> {
    tool: Tool<'a>,
    /// The run that attached.
    pub ran: Ran,
}

impl<'a> Attached<'a> {
    pub(super) const fn new(tool: Tool<'a>, ran: Ran) -> Self {
        Self { tool, ran }
    }

    /// Counters of the default rule in one direction.
    ///
    /// # Panics
    ///
    /// If there is not exactly one such row, or its sums contradict each other.
    #[must_use]
    pub fn stats(&self, direction: Direction) -> RuleStats {
        self.rule(direction, "default")
    }

    /// Counters of a rule in one direction.
    ///
    /// # Panics
    ///
    /// As [`Attached::stats`].
    #[must_use]
    pub fn rule(&self, direction: Direction, rule: &str) -> RuleStats {
        let rows = self.tool.stats(Some(&self.tool.host.dev));
        let mut rows = rows.into_iter().filter(|row| row.direction == direction && row.rule == rule);
        let (row, more) = (rows.next(), rows.next());
        let row = row.unwrap_or_else(|| panic!("no {} row of the rule {rule}", direction.word()));
        assert_eq!(more, None, "two rows of the rule {rule}");
        let judged = row.reasons.judged();
        assert_eq!((judged.packets, judged.bytes), (row.judged_packets(), row.judged_bytes()), "reasons of {row:?}");
        let exempt = row.reasons.exempt;
        assert_eq!((exempt.packets, exempt.bytes), (row.exempt_packets, row.exempt_bytes), "exempt of {row:?}");
        row
    }

    /// Flows of one direction.
    ///
    /// # Panics
    ///
    /// If the tool fails.
    #[must_use]
    pub fn flows(&self, direction: Direction) -> Vec<Flow> {
        let flows = self.tool.flows(Some(&self.tool.host.dev));
        flows.into_iter().filter(|flow| flow.direction == direction).collect()
    }

    /// The only flow of one direction.
    ///
    /// # Panics
    ///
    /// If there is none, or another.
    #[must_use]
    pub fn flow(&self, direction: Direction) -> Flow {
        let mut flows = self.flows(direction);
        assert_eq!(flows.len(), 1, "{flows:?}");
        flows.remove(0)
    }

    /// What would happen to a frame that crosses the device in this direction.
    ///
    /// # Panics
    ///
    /// If the tool fails, or says nothing of this direction.
    #[must_use]
    pub fn explain(&self, direction: Direction, frame: &UdpFrame) -> Explanation {
        let said = self.tool.explain(&self.tool.host.dev, frame);
        said.into_iter().find(|said| said.direction == direction).expect("it is limited in this direction")
    }

    /// Changes limits.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn set(&self, limits: &str) -> Ran {
        let line = ["set", &self.tool.host.dev].into_iter().chain(limits.split_whitespace());
        self.tool.ok(&line.collect::<Vec<_>>())
    }

    /// Runs `rule`; the words are those of its command line without the device: `add 10.0.0.0/8 --rate 8bit`.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn change_rules(&self, words: &str) -> Ran {
        let mut words = words.split_whitespace();
        let line = ["rule"].into_iter().chain(words.next()).chain([self.tool.host.dev.as_str()]).chain(words);
        self.tool.ok(&line.collect::<Vec<_>>())
    }

    /// Attaches once more, with these options.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn again(&self, options: &str) -> Ran {
        self.tool.ok(&self.tool.attach_line(options))
    }

    /// Takes it off, as the guard does, but failing if that fails.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn detach(self) -> Ran {
        self.tool.ok(&["detach", &self.tool.host.dev])
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let failed = thread::panicking();
        let detached = contained(|| {
            if failed {
                eprintln!("{}", self.tool.state());
            }
            // Whatever it says: the test may have detached itself, or the device may be gone.
            self.tool.run(&["detach", &self.tool.host.dev]);
        });
        if detached.is_none() {
            eprintln!("{} stays limited until the sandbox ends", self.tool.host.dev);
        }
    }
}
