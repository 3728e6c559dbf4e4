//! Texts that several crates need: error chains, foreign text in messages, DNS names.

mod chain;
pub mod dns;
mod foreign;

pub use chain::{causes, chain, chain_within};
pub use foreign::{cut, head, printable, quoted};
