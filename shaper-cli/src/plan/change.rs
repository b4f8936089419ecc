//! What `attach` and `set` make of an attachment.

use std::collections::HashMap;

use crate::{
    args::{Attach, DirectionChoice, Set},
    error::{Error, Result},
    model::{Config, Device, Direction, Found, Limits, Outcome, Rule, State},
    shell,
};

use super::limits::limits;

/// A configuration for one direction of a device.
#[derive(Clone, Debug)]
pub struct Change {
    /// The device.
    pub device: Device,
    /// Direction.
    pub direction: Direction,
    /// What is to be in force.
    pub config: Config,
    /// What is there now, if it works.
    pub before: Option<Found>,
}

impl Change {
    /// What making the change will do.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match &self.before {
            None => Outcome::Created,
            Some(found) if found.config == self.config => Outcome::Unchanged,
            Some(_) => Outcome::Updated,
        }
    }
}

/// The rules that come or change.
#[must_use]
pub fn other_rules(change: &Change) -> Vec<&Rule> {
    let before = change.before.as_ref().map_or(&[][..], |before| &before.config.rules);
    let old: HashMap<&str, &Rule> = before.iter().map(|rule| (rule.name.as_str(), rule)).collect();
    change.config.rules.iter().filter(|rule| old.get(rule.name.as_str()) != Some(rule)).collect()
}

/// What `attach` asks for on `device`, where `found` is attached.
///
/// # Errors
///
/// If the arguments do not go together, or not with the device.
pub fn attach(args: &Attach, device: &Device, found: &[Found]) -> Result<Vec<Change>> {
    fit(device, args.direction, found)?;
    let config = Config {
        limits: limits(&args.limits, &Limits::default())?,
        per: args.per,
        max_flows: args.max_flows,
        overflow: args.overflow,
        account: args.account,
        overhead: args.overhead,
        mpu: args.mpu,
        hook: args.hook,
        order: args.order,
        rules: Vec::new(),
    };
    let mut changes = place(&config, device, args.direction, found)?;
    for Change { config, before, .. } in &mut changes {
        // Rules are no options of `attach`: they stay.
        config.rules = before.as_ref().map(|before| before.config.rules.clone()).unwrap_or_default();
    }
    Ok(changes)
}

/// What puts `config` in force on `device`, where `found` is attached.
///
/// # Errors
///
/// If the device or the directions do not allow that.
pub fn place(config: &Config, device: &Device, direction: DirectionChoice, found: &[Found]) -> Result<Vec<Change>> {
    fit(device, direction, found)?;
    let change = |direction: &Direction| Change {
        device: device.clone(),
        direction: *direction,
        config: config.clone(),
        before: before(device, *direction, found).cloned(),
    };
    Ok(direction.directions().iter().map(change).collect())
}

/// What limits `device` in a direction now.
fn before<'f>(device: &Device, direction: Direction, found: &'f [Found]) -> Option<&'f Found> {
    let here = |found: &&Found| found.ifindex == device.ifindex && found.direction == direction;
    found.iter().filter(here).find(|found| found.state == State::Active)
}

/// Whether a device can be limited in these directions.
fn fit(device: &Device, direction: DirectionChoice, found: &[Found]) -> Result<()> {
    let directions = direction.directions();
    if !device.readable {
        return Err(Error::usage(
            device.name.clone(),
            "its packets start with neither an Ethernet nor an IP header, so none could be limited",
            "limit a device above or below it, `ip -d link` shows which there are",
        ));
    }
    if device.loopback {
        let [direction] = directions else {
            return Err(Error::usage(
                "--direction both",
                format!("every packet crosses both hooks of {} and would be charged twice", device.name),
                "choose ingress or egress",
            ));
        };
        if let Some(other) =
            Direction::ALL.into_iter().find(|other| other != direction && before(device, *other, found).is_some())
        {
            return Err(Error::usage(
                format!("--direction {direction}"),
                format!("{} is limited at {other}, and every packet crosses both hooks", device.name),
                format!("`{}` makes room", shell::line(None, "detach", &device.name, &format!(" --direction {other}"))),
            ));
        }
    }
    Ok(())
}

/// What `set` makes of `found`, on `device`: what is not named stays, and a burst that was never given follows its rate.
///
/// # Errors
///
/// If the limits would not go together.
pub fn set(args: &Set, device: &Device, found: &Found) -> Result<Change> {
    let config = Config { limits: limits(&args.limits, &found.config.limits)?, ..found.config.clone() };
    Ok(Change { device: device.clone(), direction: found.direction, config, before: Some(found.clone()) })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        args::Command,
        plan::example::{self, command},
    };

    fn attach_line(line: &str) -> Attach {
        match command(line) {
            Command::Attach(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn set_line(line: &str, found: &Found) -> Config {
        match command(line) {
            Command::Set(args) => set(&args, &example::device(), found).unwrap().config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_that_are_not_named_are_the_defaults() {
        let changes = attach(&attach_line("attach eth0 --rate 1gbit"), &example::device(), &[]).unwrap();
        let [Change { direction: Direction::Ingress, config, before: None, .. }] = changes.as_slice() else {
            panic!("{changes:?}")
        };
        assert_eq!(*config, example::config());
        assert_eq!(config.limits.rate, example::byte_limit(1_000_000_000, 31_250_000, false));
    }

    #[test]
    fn attach_says_what_it_will_do() {
        let found = example::found();
        let changes = |line, found: &Found| {
            let changes = attach(&attach_line(line), &example::device(), std::slice::from_ref(found)).unwrap();
            changes.iter().map(Change::outcome).collect::<Vec<_>>()
        };
        let same = "attach eth0 --rate 1gbit";
        assert_eq!(changes(same, &found), [Outcome::Unchanged]);
        assert_eq!(changes("attach eth0 --rate 2gbit", &found), [Outcome::Updated]);
        assert_eq!(changes("attach eth0 --rate 1gbit --burst 31250000", &found), [Outcome::Updated]);
        assert_eq!(
            changes("attach eth0 --rate 1gbit --direction both", &found),
            [Outcome::Unchanged, Outcome::Created]
        );
        assert_eq!(changes(same, &Found { ifindex: 3, ..found.clone() }), [Outcome::Created]);
        assert_eq!(changes(same, &Found { state: State::Gone, ..found }), [Outcome::Created]);
    }

    #[test]
    fn a_device_whose_packets_cannot_be_read_is_refused() {
        let infiniband = Device { ethernet: false, readable: false, ..example::device() };
        let error = attach(&attach_line("attach eth0 --rate 1gbit"), &infiniband, &[]).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().starts_with("`eth0`: "), "{error}");
    }

    #[test]
    fn a_packet_on_lo_is_charged_once() {
        let lo = Device { name: "lo".to_owned(), ifindex: 1, ethernet: true, readable: true, loopback: true };
        let error = attach(&attach_line("attach lo --rate 1gbit --direction both"), &lo, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--direction both`: every packet crosses both hooks of lo and would be charged twice"
        );
        let found = Found { dev: "lo".to_owned(), ifindex: 1, ..example::found() };
        let egress = attach_line("attach lo --rate 1gbit --direction egress");
        let error = attach(&egress, &lo, std::slice::from_ref(&found)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--direction egress`: lo is limited at ingress, and every packet crosses both hooks"
        );
        assert_eq!(attach(&attach_line("attach lo --rate 1gbit"), &lo, &[found]).unwrap().len(), 1);
    }

    #[test]
    fn values_that_set_does_not_name_stay() {
        let mut found = example::found();
        found.config.max_flows = 7;
        let config = set_line("set eth0 --rate 100mbit", &found);
        assert_eq!((config.limits.rate, config.max_flows), (example::byte_limit(100_000_000, 3_125_000, false), 7));
        let config = set_line("set eth0 --burst 1mb", &found);
        assert_eq!(config.limits.rate, example::byte_limit(1_000_000_000, 1 << 20, true));
        let config = set_line("set eth0 --rate 100mbit --burst 1s", &found);
        assert_eq!(config.limits.rate, example::byte_limit(100_000_000, 12_500_000, true));

        found.config.limits.rate = example::byte_limit(1_000_000_000, 31_250_000, true);
        let config = set_line("set eth0 --rate 100mbit", &found);
        assert_eq!(config.limits.rate, example::byte_limit(100_000_000, 31_250_000, true));
    }

    #[test]
    fn attach_again_forgets_limits_that_it_does_not_name() {
        let mut found = example::found();
        found.config.limits = example::limits();
        let changes = attach(&attach_line("attach eth0 --rate 1gbit"), &example::device(), &[found]).unwrap();
        assert_eq!(changes[0].config, example::config());
        assert_eq!(changes[0].outcome(), Outcome::Updated);
    }

    #[test]
    fn attach_and_set_keep_rules() {
        let mut found = example::found();
        found.config.rules = vec![example::rule("guests")];
        let again = attach(&attach_line("attach eth0 --rate 1gbit"), &example::device(), &[found.clone()]).unwrap();
        assert_eq!(again[0].outcome(), Outcome::Unchanged);
        let other = attach(&attach_line("attach eth0 --unlimited"), &example::device(), &[found.clone()]).unwrap();
        assert_eq!(other[0].config.rules, found.config.rules);
        assert_eq!(set_line("set eth0 --rate 100mbit", &found).rules, found.config.rules);
    }
}
