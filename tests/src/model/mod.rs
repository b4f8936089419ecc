//! Simple things that are obviously right, and the host's side of the data plane.

pub mod admitted;
pub mod clocks;
pub mod exact;
pub mod interleaving;
pub mod packet;
pub mod plane;
pub mod rules;
