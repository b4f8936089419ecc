//! Whether the key of a packet decides which rule it meets.

use super::*;

/// The key that is at egress what this one is at ingress.
fn turned(per: Per) -> Per {
    let kind = match per.kind {
        key::Per::Src => key::Per::Dst,
        key::Per::Dst => key::Per::Src,
        other => other,
    };
    Per { kind, ..per }
}

#[test]
fn a_key_decides_if_rules_look_at_nothing_else() {
    let remote = |nets: &[&str]| rule(to(nets));
    let local = |nets: &[&str]| rule(Match { side: Side::Local, ..to(nets) });
    let proto = |rule: Rule| Rule { matches: Match { proto: Some(UDP), ..rule.matches }, ..rule };
    let ports = |rule: Rule| Rule { matches: Match { ports: either(1, 2), ..rule.matches }, ..rule };
    let own = |per: &str, rule: Rule| Rule { per: Some(per.parse().unwrap()), ..rule };
    let any = || rule(Match::default());
    let everything = ["0.0.0.0/0", "::/0"];
    // At ingress, where remote is the source: keys that decide, and keys that do not.
    for (rules, decide, others) in [
        (vec![], "flow pair src dst src/8 dst/8 dev", ""),
        (vec![any()], "flow pair src dst src/1,1 dst/1,1", "dev"),
        (vec![proto(any())], "flow", "pair src dst dev"),
        (vec![ports(any())], "flow", "pair src dst dev"),
        (vec![remote(&["10.0.0.0/8"])], "flow pair src src/8 src/32", "dst src/7 dev"),
        (vec![local(&["10.0.0.0/8"])], "flow pair dst dst/8 dst/32", "src dst/7 dev"),
        (vec![remote(&["2001:db8::/48"])], "src src/1 src/1,48", "src/32,47 dst"),
        (vec![remote(&["10.0.0.0/8", "2001:db8::/48"])], "src/8,48", "src/7,48 src/8,47 dst"),
        (vec![remote(&["10.0.0.0/8"]), local(&["10.0.0.0/8"])], "flow pair", "src dst dev"),
        (vec![remote(&["10.0.0.0/8"]), any(), local(&everything)], "flow pair src src/8,1", "dst dev"),
        (vec![remote(&["10.0.0.0/8"]), proto(any())], "flow", "pair src dst dev"),
        (vec![own("src", remote(&["10.0.0.0/8"]))], "src", "flow pair dst src/24 dev"),
        (vec![own("flow", any()), any()], "flow", "pair src dst dev"),
        (vec![own("src/24", any()), any()], "src/24 src/24,64", "src src/24,48 flow"),
    ] {
        for (pers, decides) in [(decide, true), (others, false)] {
            for text in pers.split_whitespace() {
                let per = text.parse().unwrap();
                assert_eq!(key_decides(&rules, per, Direction::Ingress), decides, "{text}: {rules:?}");
                let at_egress = |rule: &Rule| Rule { per: rule.per.map(turned), ..rule.clone() };
                let rules: Vec<Rule> = rules.iter().map(at_egress).collect();
                assert_eq!(key_decides(&rules, turned(per), Direction::Egress), decides, "{text}, turned: {rules:?}");
            }
        }
    }
}
