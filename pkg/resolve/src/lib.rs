//! Which bundle, and why: candidates, successors, ordering, catalogs' priority.
//!
//! [`resolve`] is one pure function of what is asked for, what is installed and what the catalogs hold. It
//! returns its reasoning ([`Explanation`]) with the answer and with the error alike; [`suggest`] says what to
//! change in the spec to get a version that is not chosen. Where it departs from
//! upstream on purpose is listed in `docs/deviations.md`, and [`Selection::Upstream`] turns that off.

mod change;
mod choose;
pub mod constraint;
mod deprecation;
mod error;
mod explain;
mod facts;
mod held;
mod hint;
mod installed_version;
mod known_catalogs;
mod near;
mod outcome;
mod question;
mod reach;
mod request;
mod select;
mod selector;
mod suggest;

pub use change::{Change, apply};
pub use deprecation::DeprecationInfo;
pub use error::{ResolveError, Trouble};
pub use explain::{CandidateVerdict, CatalogExplanation, CatalogOutcome, Explanation, Note, Rule};
pub use held::{HeldBack, Hold, held_back};
pub use near::{did_you_mean, near_names, near_versions};
pub use request::{CatalogInput, CatalogLookup, Installed, Request, Resolution, Selection};
pub use select::resolve;
pub use selector::{Operator, Requirement, Selector, SelectorError};
pub use suggest::suggest;
