//! What a configuration file asks for on the devices that there are.

use std::collections::{HashMap, hash_map::Entry};

use super::change::{Change, place};
use crate::{
    config::{Attachment, Configuration, Diagnostics, Source},
    model::{Device, Found},
    net,
};

/// What puts in force what the file says, where `found` is attached.
///
/// # Errors
///
/// If a device is not there or cannot be limited so.
pub fn file<'s>(
    source: &'s Source,
    configuration: &Configuration,
    devices: &[Device],
    found: &[Found],
) -> Result<Vec<Change>, Diagnostics<'s>> {
    let mut diagnostics = Diagnostics::new(source);
    let mut changes = Vec::new();
    let named: HashMap<&str, &Device> = devices.iter().map(|device| (device.name.as_str(), device)).collect();
    let mut loopbacks = HashMap::new();
    for attachment in &configuration.attachments {
        let Attachment { dev, direction, config, dev_at, direction_at } = attachment;
        // A name that is not there is looked for once more, to tell the one that may be meant.
        let device = named.get(dev.as_str()).map_or_else(|| net::named(devices, dev), |device| Ok(*device));
        let planned = device.and_then(|device| Ok((device, place(config, device, *direction, found)?)));
        match planned {
            Ok((device, planned)) => {
                if device.loopback {
                    match loopbacks.entry(device.ifindex) {
                        Entry::Vacant(first) => {
                            first.insert(dev_at.start);
                        }
                        Entry::Occupied(first) => {
                            let line = source.line(*first.get());
                            diagnostics.add(
                                direction_at.clone(),
                                format!("{dev} is limited on line {line} already, and every packet crosses both hooks"),
                                "choose ingress or egress",
                            );
                        }
                    }
                }
                changes.extend(planned);
            }
            Err(error) => {
                let direction = error.token().is_some_and(|token| token.starts_with("--direction"));
                let at = if direction { direction_at } else { dev_at };
                diagnostics.add(at.clone(), error.cause(), error.hint());
            }
        }
    }
    if diagnostics.is_empty() { Ok(changes) } else { Err(diagnostics) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        config,
        model::{Direction, Outcome},
        plan::example,
    };

    /// What the file makes of eth0, which has `found`, and lo: each change, or the lines that say what is wrong.
    fn planned(text: &str, found: &[Found]) -> Vec<String> {
        let source = Source::new("f", text.as_bytes().to_vec());
        let configuration = config::read(&source).unwrap();
        let lo = Device { name: "lo".to_owned(), ifindex: 1, loopback: true, ..example::device() };
        match file(&source, &configuration, &[lo, example::device()], found) {
            Ok(changes) => {
                let line =
                    |change: &Change| format!("{} {} {:?}", change.device.name, change.direction, change.outcome());
                changes.iter().map(line).collect()
            }
            Err(diagnostics) => {
                assert_eq!(diagnostics.failure().exit_code(), 1);
                let errors = diagnostics.render();
                errors.lines().filter(|line| !line.contains('|')).map(str::to_owned).collect()
            }
        }
    }

    #[test]
    fn each_direction_is_a_change() {
        let text = "version = 1\n[[attach]]\ndev = \"eth0\"\nrate = \"1gbit\"\ndirection = \"both\"";
        assert_eq!(planned(text, &[example::found()]), ["eth0 ingress Unchanged", "eth0 egress Created"]);
        assert_eq!(planned("version = 1", &[example::found()]), [""; 0]);
    }

    #[test]
    fn rules_that_are_not_in_the_file_go_away() {
        let mut found = example::found();
        found.config.rules = vec![example::rule("guests")];
        let text = "version = 1\n[[attach]]\ndev = \"eth0\"\nrate = \"1gbit\"\n";
        let source = Source::new("f", text.as_bytes().to_vec());
        let changes = file(&source, &config::read(&source).unwrap(), &[example::device()], &[found]).unwrap();
        assert_eq!((changes[0].outcome(), changes[0].config.rules.len()), (Outcome::Updated, 0));
        assert_eq!(changes[0].direction, Direction::Ingress);
    }

    #[test]
    fn what_the_devices_do_not_allow_has_its_place() {
        let attach = |dev: &str, direction: &str| {
            format!("[[attach]]\ndev = \"{dev}\"\ndirection = \"{direction}\"\nrate = 8\n")
        };
        let text = format!("version = 1\n{}{}", attach("eth1", "ingress"), attach("lo", "both"));
        assert_eq!(
            planned(&text, &[]),
            [
                "error: f:3:7: no network device `eth1`",
                " hint: did you mean `eth0`?",
                "error: f:8:13: every packet crosses both hooks of lo and would be charged twice",
                " hint: choose ingress or egress",
            ]
        );
        let text = format!("version = 1\n{}{}", attach("lo", "ingress"), attach("lo", "egress"));
        assert_eq!(
            planned(&text, &[]),
            [
                "error: f:8:13: lo is limited on line 3 already, and every packet crosses both hooks",
                " hint: choose ingress or egress",
            ]
        );
    }
}
