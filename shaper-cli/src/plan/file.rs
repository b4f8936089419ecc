//! What a configuration file asks for on the devices that there are.

use std::collections::{HashMap, hash_map::Entry};

use super::change::{Change, place};
use crate::{
    config::{Attachment, Configuration, Diagnostics, Source},
    error::Error,
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
                let at = match &error {
                    Error::Usage { token, .. } if token.starts_with("--direction") => direction_at,
                    _ => dev_at,
                };
                let cause = match &error {
                    Error::Usage { cause, .. } => cause.clone(),
                    other => other.to_string(),
                };
                diagnostics.add(at.clone(), cause, error.hint());
            }
        }
    }
    if diagnostics.is_empty() { Ok(changes) } else { Err(diagnostics) }
}
