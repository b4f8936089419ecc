//! Whether keys decide about rules.

use shaper_common::{key, rule::End};

use super::end_of;
use crate::model::{Direction, Match, Net, Per, Ports, Rule};

/// Whether packets with the same key under `per`, the attachment's, always meet the same rule. Then the rule can be
/// remembered with the key.
///
/// False too if a rule has another key of its own.
#[must_use]
pub fn key_decides(rules: &[Rule], per: Per, direction: Direction) -> bool {
    rules.iter().all(|rule| {
        let matches = &rule.matches;
        rule.per.is_none_or(|own| own == per)
            && match per.kind {
                key::Per::Flow => true,
                key::Per::Pair => only_addresses(matches),
                key::Per::Src => only_addresses(matches) && within_key(matches, End::Src, per, direction),
                key::Per::Dst => only_addresses(matches) && within_key(matches, End::Dst, per, direction),
                // Also a rule for any address: packets whose address cannot be read have the same key, and meet none.
                key::Per::Dev => false,
            }
    })
}

/// Whether a rule asks for addresses alone.
fn only_addresses(matches: &Match) -> bool {
    matches.proto.is_none() && matches.ports == Ports::Any
}

/// Whether the part of one address that is in the key is all that a rule looks at.
///
/// A prefix of no bits looks at no address. The IP version, by which it tells packets apart, is in the key.
fn within_key(matches: &Match, end: End, per: Per, direction: Direction) -> bool {
    let at_end = end_of(matches.side, direction) == end;
    let kept = |net: &Net| if net.address().is_ipv4() { per.prefix.v4 } else { per.prefix.v6 };
    matches.nets.iter().all(|net| net.is_empty() || at_end && net.len() <= kept(net))
}
