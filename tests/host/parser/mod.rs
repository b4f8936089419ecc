//! The packet parser: against etherparse, against what was built, against hostile bytes, and over the corpus.

mod corpus;
mod discovery;
mod generate;
mod hostile;
mod limits;
mod referee;
mod valid;
