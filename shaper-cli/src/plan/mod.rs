//! What the arguments mean, worked out without a kernel: configurations, selections, orders, warnings.

mod change;
mod limits;
mod line;
mod select;
mod top;

pub(crate) use self::line::word;
pub use self::{
    change::{Change, attach, set},
    limits::warnings,
    line::{attach_line, detach_line},
    select::{Which, select},
    top::top,
};

#[cfg(test)]
pub(crate) mod example;
