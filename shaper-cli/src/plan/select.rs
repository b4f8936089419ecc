//! Which attachments a command means.

use crate::{
    args::DirectionChoice,
    error::{Error, Result},
    model::{Direction, Found, State},
};

/// Which attachments can be meant at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that limit something.
    Active,
    /// And what is left of others.
    All,
}

/// The attachments that are meant by `dev`, all devices if it is `None`, and `direction`, all if it is `None`.
///
/// # Errors
///
/// If a device is named and one of the directions named (or, if none is, every direction) has no attachment there.
pub fn select(
    found: Vec<Found>,
    which: Which,
    dev: Option<&str>,
    direction: Option<DirectionChoice>,
) -> Result<Vec<Found>> {
    let directions = direction.map_or(Direction::ALL.as_slice(), DirectionChoice::directions);
    let (meant, gone): (Vec<_>, Vec<_>) = found
        .into_iter()
        .filter(|found| dev.is_none_or(|dev| found.dev == dev) && directions.contains(&found.direction))
        .partition(|found| which == Which::All || found.state == State::Active);
    let Some(dev) = dev else { return Ok(meant) };
    let has = |direction: &Direction| meant.iter().any(|found| found.direction == *direction);
    let missing = match direction {
        Some(_) => directions.iter().find(|direction| !has(direction)).map(|direction| Some(*direction)),
        None => meant.is_empty().then_some(None),
    };
    match missing {
        None => Ok(meant),
        Some(direction) => {
            let gone = gone.iter().find(|gone| direction.is_none_or(|direction| gone.direction == direction));
            Err(match gone {
                Some(gone) => Error::Gone { dev: dev.to_owned(), direction: gone.direction },
                None => Error::NotAttached { dev: dev.to_owned(), direction },
            })
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::plan::example;

    /// eth0 in both directions, eth1 at egress, and what was left of eth2 at ingress.
    fn there() -> Vec<Found> {
        [
            ("eth0", Direction::Ingress),
            ("eth0", Direction::Egress),
            ("eth1", Direction::Egress),
            ("eth2", Direction::Ingress),
        ]
        .into_iter()
        .map(|(dev, direction)| Found {
            dev: dev.to_owned(),
            direction,
            state: if dev == "eth2" { State::Gone } else { State::Active },
            ..example::found()
        })
        .collect()
    }

    fn selected(which: Which, dev: Option<&str>, direction: Option<DirectionChoice>) -> Result<String, String> {
        let name = |found: &Found| format!("{} {}", found.dev, found.direction);
        match select(there(), which, dev, direction) {
            Ok(found) => Ok(found.iter().map(name).collect::<Vec<_>>().join(", ")),
            Err(error) => {
                assert_eq!(error.exit_code(), 3);
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn without_a_direction_all_that_are_attached_are_meant() {
        assert_eq!(selected(Which::Active, Some("eth0"), None).unwrap(), "eth0 ingress, eth0 egress");
        assert_eq!(selected(Which::Active, Some("eth1"), None).unwrap(), "eth1 egress");
        assert_eq!(selected(Which::Active, None, None).unwrap(), "eth0 ingress, eth0 egress, eth1 egress");
        assert_eq!(selected(Which::All, None, None).unwrap(), "eth0 ingress, eth0 egress, eth1 egress, eth2 ingress");
        assert_eq!(selected(Which::All, Some("eth2"), None).unwrap(), "eth2 ingress");
    }

    #[test]
    fn a_direction_that_is_named_must_be_there() {
        let (ingress, both) = (Some(DirectionChoice::Ingress), Some(DirectionChoice::Both));
        assert_eq!(selected(Which::Active, Some("eth0"), ingress).unwrap(), "eth0 ingress");
        assert_eq!(selected(Which::Active, None, ingress).unwrap(), "eth0 ingress");
        assert_eq!(selected(Which::Active, Some("eth0"), both).unwrap(), "eth0 ingress, eth0 egress");
        assert_eq!(selected(Which::Active, Some("eth1"), both).unwrap_err(), "nothing is attached to eth1 ingress");
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert_eq!(selected(Which::Active, Some("eth3"), None).unwrap_err(), "nothing is attached to eth3");
        assert_eq!(
            selected(Which::Active, Some("eth2"), None).unwrap_err(),
            "the attachment to eth2 ingress is gone: its device or its program has vanished"
        );
    }
}
