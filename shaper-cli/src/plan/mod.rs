//! What the arguments mean, worked out without a kernel: configurations, selections, orders, warnings.

mod change;
mod file;
mod limits;
mod line;
mod select;
mod top;

pub use self::{
    change::{Change, attach, place, set},
    file::file,
    limits::warnings,
    line::{attach_line, detach_line},
    select::{Which, select},
    top::top,
};
pub(crate) use self::{
    limits::limits,
    line::{limit_options, options, word},
};

#[cfg(test)]
pub(crate) mod example;
