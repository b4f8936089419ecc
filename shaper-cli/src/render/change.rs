//! What a changing command did or would do, and how to undo it.

use std::io::{self, Write};

use super::{difference, summary};
use crate::{
    model::{Config, Found, Outcome, State},
    plan::{Change, attach_line, detach_line, word},
};

/// What `attach` or `set` did: `found` is what is there now.
///
/// # Errors
///
/// If `out` fails.
pub fn changed(change: &Change, outcome: Outcome, found: &Found, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    let done = match outcome {
        Outcome::Created => "created",
        Outcome::Updated => "updated",
        Outcome::Unchanged => "unchanged",
    };
    writeln!(out, "{}", summary::attachment(&format!("{done} {} {}:", found.dev, found.direction), found))?;
    indented(&summary::settings(&found.config, verbose), out)?;
    counted(&found.config, out)?;
    match (outcome, &change.before) {
        (Outcome::Created, _) => writeln!(out, "undo: {}", detach_line(found)),
        (Outcome::Updated, Some(before)) if before.config.rules == found.config.rules => {
            writeln!(out, "undo: {}", attach_line(before))
        }
        (Outcome::Updated, Some(before)) => {
            difference::rules(&before.config, &found.config, verbose, out)?;
            writeln!(out, "undo: {}", attach_line(before))?;
            writeln!(out, "    that leaves the rules as they are now; `shaper save` keeps them before a change")
        }
        _ => Ok(()),
    }
}

/// What `attach` or `set` would do.
///
/// # Errors
///
/// If `out` fails.
pub fn would_change(change: &Change, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    let Change { device, direction, config, before } = change;
    let would = match change.outcome() {
        Outcome::Created => "would create",
        Outcome::Updated => "would update",
        Outcome::Unchanged => "unchanged",
    };
    let start = format!("{would} {} {direction}:", device.name);
    writeln!(out, "{}", summary::limits(&start, config, &format!("hook {}", word(&config.hook))))?;
    indented(&summary::settings(config, verbose), out)?;
    let Some(before) = before else { return counted(config, out) };
    if differs_beside_rules(config, &before.config) {
        writeln!(out, "{}", summary::attachment("    now:", before))?;
        indented(&summary::settings(&before.config, verbose), out)?;
    }
    difference::rules(&before.config, config, verbose, out)
}

/// Whether two configurations differ in more than their rules.
fn differs_beside_rules(a: &Config, b: &Config) -> bool {
    let Config { limits, per, max_flows, overflow, account, overhead, mpu, hook, order, rules: _ } = a;
    (limits, per, max_flows, overflow) != (&b.limits, &b.per, &b.max_flows, &b.overflow)
        || (account, overhead, mpu, hook, order) != (&b.account, &b.overhead, &b.mpu, &b.hook, &b.order)
}

fn counted(config: &Config, out: &mut dyn Write) -> io::Result<()> {
    match config.rules.len() {
        0 => Ok(()),
        1 => writeln!(out, "    1 rule"),
        rules => writeln!(out, "    {rules} rules"),
    }
}

/// What `detach` did.
///
/// # Errors
///
/// If `out` fails.
pub fn detached(found: &Found, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    if found.state == State::Gone {
        return writeln!(out, "removed what was left of {} {}", found.dev, found.direction);
    }
    writeln!(out, "{}", summary::attachment(&format!("detached {} {}:", found.dev, found.direction), found))?;
    indented(&summary::settings(&found.config, verbose), out)?;
    counted(&found.config, out)?;
    writeln!(out, "undo: {}", attach_line(found))?;
    if found.config.rules.is_empty() {
        return Ok(());
    }
    writeln!(out, "    that brings back no rules; `shaper save` keeps them before a change")
}

/// What `detach` would do.
///
/// # Errors
///
/// If `out` fails.
pub fn would_detach(found: &Found, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    if found.state == State::Gone {
        return writeln!(out, "would remove what is left of {} {}", found.dev, found.direction);
    }
    writeln!(out, "{}", summary::attachment(&format!("would detach {} {}:", found.dev, found.direction), found))?;
    indented(&summary::settings(&found.config, verbose), out)?;
    counted(&found.config, out)
}

fn indented(text: &str, out: &mut dyn Write) -> io::Result<()> {
    if text.is_empty() { Ok(()) } else { writeln!(out, "    {text}") }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        model::{Direction, Limits, Order},
        plan::example,
    };

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn before() -> Found {
        let config = Config {
            limits: Limits { rate: example::byte_limit(500_000_000, 1 << 28, true), ..Limits::default() },
            order: Order::First,
            ..example::config()
        };
        Found { config, ..example::found() }
    }

    fn change(before: Option<Found>) -> Change {
        Change { device: example::device(), direction: Direction::Ingress, config: example::config(), before }
    }

    #[test]
    fn what_was_done_is_said_with_how_to_undo_it() {
        let found = example::found();
        assert_eq!(
            text(|out| changed(&change(None), Outcome::Created, &found, false, out)),
            "created eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n\
             undo: shaper detach eth0 --direction ingress\n"
        );
        assert_eq!(
            text(|out| changed(&change(Some(before())), Outcome::Updated, &found, true, out)),
            "updated eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n    \
             room for 65536 keys; others share a bucket; counts l2 bytes; runs last\n\
             undo: shaper attach eth0 --direction ingress --rate 500mbit --burst 256mib --order first\n"
        );
        assert_eq!(
            text(|out| changed(&change(Some(example::found())), Outcome::Unchanged, &found, false, out)),
            "unchanged eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n"
        );
        assert_eq!(
            text(|out| detached(&before(), false, out)),
            "detached eth0 ingress: 500 Mbit/s per flow, burst 256 MiB = 4.29 s (tcx)\n    \
             runs first\n\
             undo: shaper attach eth0 --direction ingress --rate 500mbit --burst 256mib --order first\n"
        );
        assert_eq!(
            text(|out| detached(&Found { state: State::Gone, ..before() }, false, out)),
            "removed what was left of eth0 ingress\n"
        );
    }

    #[test]
    fn what_would_be_done_is_said_with_what_is_there_now() {
        assert_eq!(
            text(|out| would_change(&change(None), false, out)),
            "would create eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (hook auto)\n"
        );
        assert_eq!(
            text(|out| would_change(&change(Some(before())), false, out)),
            "would update eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (hook auto)\n    \
             now: 500 Mbit/s per flow, burst 256 MiB = 4.29 s (tcx)\n    \
             runs first\n"
        );
        assert_eq!(
            text(|out| would_detach(&example::found(), false, out)),
            "would detach eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n"
        );
    }

    fn with_rules(names: &[&str]) -> Found {
        let rules = names.iter().map(|name| example::rule(name)).collect();
        Found { config: Config { rules, ..example::config() }, ..example::found() }
    }

    #[test]
    fn rules_that_are_not_undone_are_told() {
        let (before, after) = (with_rules(&["guests"]), with_rules(&["guests", "others"]));
        let change = Change { config: after.config.clone(), ..change(Some(before.clone())) };
        assert_eq!(
            text(|out| changed(&change, Outcome::Updated, &after, false, out)),
            "updated eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n    \
             2 rules\n    \
             + rule others: 20 Mbit/s per src, burst 625000 B = 250 ms\n        \
             10.20.0.0/16\n\
             undo: shaper attach eth0 --direction ingress --rate 1gbit\n    \
             that leaves the rules as they are now; `shaper save` keeps them before a change\n"
        );
        assert_eq!(
            text(|out| detached(&before, false, out)),
            "detached eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n    \
             1 rule\n\
             undo: shaper attach eth0 --direction ingress --rate 1gbit\n    \
             that brings back no rules; `shaper save` keeps them before a change\n"
        );
        assert_eq!(
            text(|out| would_detach(&before, false, out)),
            "would detach eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)\n    1 rule\n"
        );
    }
}
