//! `stats` for people.

use std::io::{self, Write};

use shaper_common::{
    abi::{Count, RuleCounts},
    verdict::Reason,
};

use super::{
    human,
    table::{Flush, Table},
};
use crate::model::RuleStats;

/// What passed: everything that has a reason other than `exempt`, less what was dropped.
pub(super) fn passed(counters: &RuleCounts) -> Count {
    let limited = |count: fn(&Count) -> u64| {
        let reasons = Reason::ALL.iter().filter(|reason| **reason != Reason::Exempt);
        let sum = reasons.map(|reason| count(&counters.reasons[*reason as usize])).fold(0, u64::wrapping_add);
        // The counters of other CPUs move while they are read: a packet may be in one and not yet in the other.
        sum.saturating_sub(count(&counters.dropped))
    };
    Count { packets: limited(|count| count.packets), bytes: limited(|count| count.bytes) }
}

/// A table for each rule of each attachment: verdicts, then reasons, those without packets only if `verbose`. `left_out`
/// rules are not among them.
///
/// # Errors
///
/// If `out` fails.
pub fn stats(rules: &[RuleStats], left_out: usize, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    if rules.is_empty() {
        return writeln!(out, "nothing is attached");
    }
    for (n, RuleStats { dev, direction, rule, counters }) in rules.iter().enumerate() {
        let separator = if n == 0 { "" } else { "\n" };
        writeln!(out, "{separator}{dev} {direction}, rule {rule}")?;
        let mut table =
            Table::new([Flush::Left, Flush::Right, Flush::Right, Flush::Right], ["", "PACKETS", "BYTES", ""]);
        let mut row = |label: &str, count: Count| {
            table.row([
                label.to_owned(),
                count.packets.to_string(),
                count.bytes.to_string(),
                if count.bytes < 1000 { String::new() } else { human::bytes(count.bytes) },
            ]);
        };
        row("passed", passed(counters));
        if verbose || counters.marked.packets > 0 {
            row("  marked", counters.marked);
        }
        row("dropped", counters.dropped);
        row("exempt", counters.reasons[Reason::Exempt as usize]);
        for reason in Reason::ALL.iter().filter(|reason| **reason != Reason::Exempt) {
            let count = counters.reasons[*reason as usize];
            if verbose || count.packets > 0 {
                row(&format!("reason {}", reason.name()), count);
            }
        }
        table.write(out)?;
    }
    if left_out > 0 {
        writeln!(out, "\nThe busiest are shown, {left_out} more with --all; --rule NAME shows one.")?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::model::Direction;

    fn example() -> RuleStats {
        let mut counters = RuleCounts::default();
        let mut count = |reason: Reason, packets, bytes| counters.reasons[reason as usize] = Count { packets, bytes };
        count(Reason::Conform, 100_000, 150_000_000);
        count(Reason::Rate, 20, 30_000);
        count(Reason::Untracked, 3, 300);
        count(Reason::Exempt, 2, 84);
        counters.dropped = Count { packets: 22, bytes: 30_200 };
        RuleStats { dev: "eth0".to_owned(), direction: Direction::Ingress, rule: "default".to_owned(), counters }
    }

    fn text(rules: &[RuleStats], verbose: bool) -> String {
        let mut out = Vec::new();
        stats(rules, 0, verbose, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn verdicts_come_before_reasons() {
        assert_eq!(
            text(&[example()], false),
            "\
eth0 ingress, rule default
                  PACKETS      BYTES
passed             100001  150000100  143 MiB
dropped                22      30200   29 KiB
exempt                  2         84
reason conform     100000  150000000  143 MiB
reason rate            20      30000   29 KiB
reason untracked        3        300
"
        );
    }

    #[test]
    fn all_reasons_are_shown_when_asked_for() {
        let text = text(&[example(), example()], true);
        for reason in Reason::ALL.iter().filter(|reason| **reason != Reason::Exempt) {
            assert_eq!(text.matches(&format!("reason {} ", reason.name())).count(), 2);
        }
        assert_eq!(text.matches("\n\neth0 ingress, rule default\n").count(), 1);
    }

    #[test]
    fn rules_that_are_left_out_are_counted() {
        let mut out = Vec::new();
        stats(&[example()], 980, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("\n\nThe busiest are shown, 980 more with --all; --rule NAME shows one.\n"), "{text}");
    }

    #[test]
    fn the_widest_table_is_80_columns() {
        let mut rule = example();
        rule.counters.dropped = Count { packets: u64::MAX, bytes: u64::MAX };
        for line in text(&[rule], true).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }

    #[test]
    fn passed_is_never_negative() {
        let counters = RuleCounts { dropped: Count { packets: 1, bytes: 60 }, ..RuleCounts::default() };
        assert_eq!(passed(&counters), Count::default());
    }
}
