//! The report: measures both controllers in one run, in groups of rows, and makes tables, plots and a comparison with an earlier run.
//!
//! A [`Group`] measures figures and returns them as rows ([`row::Row`]). Pure functions compare and print the rows.

pub(crate) mod bench;
pub mod build;
pub mod compare;
pub mod document;
mod groups;
pub mod machine;
mod object;
mod options;
pub mod other_load;
mod packages;
mod plane;
pub mod plot;
mod program;
pub mod record;
mod requests;
pub mod row;
mod run;
mod scale;
mod stage;
mod start_script;
pub(crate) mod subject;
pub mod svg;
pub mod table;
#[cfg(test)]
mod xml;

pub use groups::Group;
pub use options::Options;
pub use run::run;
pub use scale::FULL;
