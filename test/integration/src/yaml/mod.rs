//! Comparison of the YAML reader of `pkg/yaml` with Go's: both read every text, and their answers must be equal. The oracle is a
//! Go program that reads with Go's libraries.

mod answer;
mod compare;
mod folder;
mod mutate;
mod oracle;
mod pieces;

pub use answer::{Answer, Mode};
pub use compare::{Difference, Report, compare, mutations};
pub use folder::{corpus, files};
pub use mutate::Mutator;
pub use oracle::Oracle;
