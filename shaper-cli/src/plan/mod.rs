//! What the arguments mean, worked out without a kernel: configurations, selections, orders, warnings.

mod change;
mod file;
mod limits;
mod line;
mod packet;
mod rule;
mod select;
mod top;

pub use self::{
    change::{Change, attach, other_rules, place, set},
    file::file,
    limits::warnings,
    line::{attach_line, detach_line, rule_add_line, rule_del_line, rule_replace_line},
    packet::packet,
    rule::{Edit, RuleChange, add, check_rule, del, replace},
    select::{Which, select},
    top::{busiest, top},
};
pub(crate) use self::{
    limits::limits,
    line::{limit_options, options, word},
    rule::matches,
};

#[cfg(test)]
pub(crate) mod example;
