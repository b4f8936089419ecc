//! Keys of a table: each is named once, with the reader that its option on the command line has.

use toml::de::DeValue;

use super::document::{word, wrong_type};
use crate::error::Invalid;

/// A key and what its value does to `T`.
pub(super) struct Key<T> {
    /// The long option of the command line, without its dashes.
    pub(super) name: &'static str,
    takes: Takes,
    /// A value that is right, as it is written.
    example: &'static str,
    read: fn(&mut T, &str) -> Result<(), Invalid>,
}

/// Which types of values a key takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Text,
    /// Text, or a whole number.
    Number,
    /// True or false, as an option without value.
    Flag,
}

impl<T> Key<T> {
    pub(super) const fn text(
        name: &'static str,
        example: &'static str,
        read: fn(&mut T, &str) -> Result<(), Invalid>,
    ) -> Self {
        Self { name, takes: Takes::Text, example, read }
    }

    pub(super) const fn number(
        name: &'static str,
        example: &'static str,
        read: fn(&mut T, &str) -> Result<(), Invalid>,
    ) -> Self {
        Self { name, takes: Takes::Number, example, read }
    }

    /// A flag; its reader is called if it is true.
    pub(super) const fn flag(name: &'static str, read: fn(&mut T, &str) -> Result<(), Invalid>) -> Self {
        Self { name, takes: Takes::Flag, example: "true or false", read }
    }

    /// Reads a value into `target`. False if it is a flag that is not set.
    pub(super) fn read(&self, target: &mut T, value: &DeValue<'_>) -> Result<bool, Invalid> {
        match (self.takes, value) {
            (Takes::Flag, DeValue::Boolean(set)) => {
                if *set {
                    (self.read)(target, "")?;
                }
                Ok(*set)
            }
            (Takes::Flag, other) => Err(wrong_type(other, self.example, self.example)),
            (takes, value) => {
                (self.read)(target, &word(value, takes == Takes::Number, self.example)?)?;
                Ok(true)
            }
        }
    }
}

/// Puts what was read in its place.
pub(super) fn put<V>(place: &mut Option<V>, value: Result<V, Invalid>) -> Result<(), Invalid> {
    *place = Some(value?);
    Ok(())
}
