//! Which bundle, and why: candidates, successors, ordering, catalogs' priority.
//!
//! [`resolve`] is one pure function of what is asked for, what is installed and what the catalogs hold. It
//! returns its reasoning ([`Explanation`]) with the answer and with the error alike. Where it departs from
//! upstream on purpose is listed in `docs/deviations.md`, and [`Selection::Upstream`] turns that off.

mod candidates;
mod deprecation;
mod error;
mod explain;
mod field;
mod hint;
mod outcome;
mod request;
mod select;
mod selector;
mod successor;

pub use deprecation::DeprecationInfo;
pub use error::{ResolveError, Trouble};
pub use explain::{CandidateVerdict, CatalogExplanation, CatalogOutcome, Explanation, Rule};
pub use request::{CatalogInput, CatalogLookup, Installed, Request, Resolution, Selection};
pub use select::resolve;
pub use selector::{Operator, Requirement, Selector, SelectorError};
