//! Shared texts and names: error chains, untrusted text in messages, DNS names, identity of objects, phrases, names of
//! bundles, packages and catalogs.

mod chain;
pub mod dns;
mod foreign;
pub mod name;
pub mod object;
mod phrase;

pub use chain::{causes, chain, chain_within};
pub use foreign::{changes_direction, cut, head, printable, quoted};
pub use phrase::{counted, list, summary};
