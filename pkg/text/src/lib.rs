//! Shared text functions: error chains, untrusted text in messages, DNS names, identity of objects.

mod chain;
pub mod dns;
mod foreign;
pub mod object;

pub use chain::{causes, chain, chain_within};
pub use foreign::{cut, head, printable, quoted};
