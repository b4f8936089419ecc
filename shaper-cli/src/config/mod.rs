//! The configuration file: read with the words and units of the command line, and written so that it reads back.
//!
//! [`Source`] is a file's text, [`read`] makes a [`Configuration`] of it or [`Diagnostics`], which have everything that is
//! wrong with it, place by place. Nothing here asks a kernel. [`save::write`] goes the other way.

mod attachment;
mod diagnostic;
mod document;
mod key;
mod limits;
mod rule;
mod save;
mod section;
mod source;
#[cfg(test)]
mod tests;

use toml::de::DeValue;

pub use self::{attachment::Attachment, diagnostic::Diagnostics, save::write, source::Source};
use crate::near::nearest;

/// The version of the format.
const VERSION: &str = "1";

/// What a file says.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Its attachments, in the order of the file.
    pub attachments: Vec<Attachment>,
}

/// Reads a file.
///
/// # Errors
///
/// If anything is wrong with it.
pub fn read(source: &Source) -> Result<Configuration, Diagnostics<'_>> {
    let mut diagnostics = Diagnostics::new(source);
    let configuration = understand(source, &mut diagnostics);
    if diagnostics.is_empty() { Ok(configuration) } else { Err(diagnostics) }
}

fn understand<'s>(source: &'s Source, diagnostics: &mut Diagnostics<'s>) -> Configuration {
    let mut configuration = Configuration::default();
    let Some(root) = document::parse(source, diagnostics) else { return configuration };
    let keys = ["version", "attach"];
    for (key, value) in &root {
        let (value, at) = (value.get_ref(), value.span());
        match key.get_ref().as_ref() {
            "version" => {
                if !matches!(value, DeValue::Integer(number) if number.to_string() == VERSION) {
                    diagnostics.add(at, "not a version that this shaper reads", format!("write `version = {VERSION}`"));
                }
            }
            "attach" => configuration.attachments = attachments(value, at, diagnostics),
            other => {
                let hint = match nearest(other, keys.into_iter()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "what limits a device stands under `[[attach]]`".to_owned(),
                };
                diagnostics.add(key.span(), format!("`{other}`: no such key"), hint);
            }
        }
    }
    if !root.contains_key("version") {
        diagnostics.lack(0..0, "`version`: missing", format!("start the file with `version = {VERSION}`"));
    }
    configuration
}

fn attachments(value: &DeValue<'_>, at: std::ops::Range<usize>, diagnostics: &mut Diagnostics<'_>) -> Vec<Attachment> {
    let tables =
        |value: &DeValue<'_>| document::wrong_type(value, "tables", "`[[attach]]` above the keys of an attachment");
    let DeValue::Array(array) = value else {
        diagnostics.refuse(at, &tables(value));
        return Vec::new();
    };
    let mut attachments = Vec::new();
    let mut places = attachment::Places::default();
    for value in array {
        match value.get_ref() {
            DeValue::Table(table) => {
                let before = diagnostics.found();
                if let Some(attachment) = attachment::read(table, value.span(), diagnostics) {
                    places.take(&attachment, diagnostics);
                    if diagnostics.found() == before {
                        attachment.compile(diagnostics);
                    }
                    attachments.push(attachment);
                }
            }
            other => diagnostics.refuse(value.span(), &tables(other)),
        }
    }
    attachments
}

impl Configuration {
    /// Attachments, each direction for itself.
    #[must_use]
    pub fn places(&self) -> usize {
        self.attachments.iter().map(|attachment| attachment.direction.directions().len()).sum()
    }

    /// Rules of all of them.
    #[must_use]
    pub fn rules(&self) -> usize {
        let rules = |attachment: &Attachment| attachment.config.rules.len() * attachment.direction.directions().len();
        self.attachments.iter().map(rules).sum()
    }
}
