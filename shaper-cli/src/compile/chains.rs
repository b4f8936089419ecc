//! The chains of all tables.

use std::collections::{HashMap, HashSet};

use shaper_common::rule::{Link, MAX_CHAIN, NO_LINK, kind, rank};

use super::{Slotted, TooMany, intervals::Prefix};
use crate::model::{PortRange, Ports};

/// Links as they are made. Equal ones are made once, so that equal chains have the same number.
pub(super) struct Chains<'a> {
    rules: &'a [Slotted<'a>],
    /// By number, less one.
    links: Vec<Link>,
    /// Of each link.
    notes: Vec<Note>,
    /// The links by what decides all of them: age and prefix length of the rule, and the next link.
    known: HashMap<(u32, u8, u32), u32>,
    /// What the rules of the present prefix ask for.
    asked: HashSet<Asked>,
}

/// What is known of a link besides.
struct Note {
    age: u32,
    /// Links from here to the end.
    links: u32,
}

/// What a rule asks for besides an address.
type Asked = (Option<u8>, Ports);

impl<'a> Chains<'a> {
    pub(super) fn new(rules: &'a [Slotted<'a>]) -> Self {
        Self { rules, links: Vec::new(), notes: Vec::new(), known: HashMap::new(), asked: HashSet::new() }
    }

    pub(super) fn into_links(self) -> Vec<Link> {
        self.links
    }

    /// The rank of a prefix's rule.
    pub(super) fn rank(&self, prefix: Prefix) -> u64 {
        rank(prefix.len(), kind_of(self.asked(prefix.age)), prefix.age)
    }

    /// The chain of a prefix: of its rules, best first, and then `around`, the chain of the prefix around it.
    ///
    /// No packet comes past a rule to another one that asks for the same, or past one that asks for nothing. Of the
    /// chain around only the first links can be left out: the others have links before them that it shares.
    pub(super) fn of(&mut self, rules: &[Prefix], around: u32) -> Result<u32, TooMany> {
        self.asked.clear();
        let mut ages = Vec::new();
        let mut next = around;
        for prefix in rules {
            let asked = self.asked(prefix.age);
            if self.asked.insert(asked) {
                ages.push(prefix.age);
            }
            if kind_of(asked) == 0 {
                next = NO_LINK;
                break;
            }
        }
        while let Some(note) = self.note(next)
            && self.asked.contains(&self.asked(note.age))
        {
            next = self.links[next as usize - 1].next;
        }
        let length = ages.len() + self.note(next).map_or(0, |note| note.links as usize);
        if length > MAX_CHAIN as usize {
            return Err(TooMany::Rules(rules[0].net(), length));
        }
        for age in ages.into_iter().rev() {
            next = self.link(age, rules[0].len(), next);
        }
        Ok(next)
    }

    /// The number of this link.
    fn link(&mut self, age: u32, len: u8, next: u32) -> u32 {
        let number = self.links.len() as u32 + 1;
        let known = *self.known.entry((age, len, next)).or_insert(number);
        if known == number {
            let links = self.note(next).map_or(0, |note| note.links) + 1;
            self.notes.push(Note { age, links });
            self.links.push(self.make(age, len, next));
        }
        known
    }

    fn make(&self, age: u32, len: u8, next: u32) -> Link {
        const ALL: PortRange = PortRange { first: 0, last: u16::MAX };
        let asked = self.asked(age);
        let (sport, dport) = match asked.1 {
            Ports::Any => (ALL, ALL),
            Ports::Either(range) => (range, range),
            Ports::Source(range) => (range, ALL),
            Ports::Destination(range) => (ALL, range),
            Ports::Both { sport, dport } => (sport, dport),
        };
        let kind = kind_of(asked);
        Link {
            rank: rank(len, kind, age),
            rule: self.rules[age as usize].slot,
            next,
            sport: [sport.first, sport.last],
            dport: [dport.first, dport.last],
            proto: asked.0.unwrap_or(0),
            kind,
            reserved: [0; 6],
        }
    }

    fn asked(&self, age: u32) -> Asked {
        let matches = &self.rules[age as usize].rule.matches;
        (matches.proto, matches.ports)
    }

    fn note(&self, link: u32) -> Option<&Note> {
        self.notes.get((link as usize).checked_sub(1)?)
    }
}

const fn kind_of((proto, ports): Asked) -> u8 {
    let proto = if proto.is_some() { kind::PROTO } else { 0 };
    let ports = match ports {
        Ports::Any => 0,
        Ports::Either(_) => kind::EITHER_PORT,
        Ports::Source(_) | Ports::Destination(_) | Ports::Both { .. } => kind::PORTS,
    };
    proto | ports
}
