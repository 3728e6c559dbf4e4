//! The YAML reader against Go's: every text goes to both, and their answers must be equal.

mod answer;
mod compare;
mod mutate;
mod oracle;

pub use answer::{Answer, Mode};
pub use compare::{Difference, Report, compare, files, mutations};
pub use mutate::Mutator;
pub use oracle::Oracle;
