//! Resolution of a bundle: candidates, successors, ordering, priority of catalogs.
//!
//! [`resolve`] is a pure function of the request, the installed bundle and the content of catalogs. It returns its
//! reasoning ([`Explanation`]) with the result and with the error alike. [`suggest`] returns the changes of the spec
//! that lead to a version that is not chosen. `docs/deviations.md` lists the deliberate deviations from upstream;
//! [`Selection::Upstream`] disables them. [`support`] has the support of a version on a day.

mod as_text;
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
mod joint;
mod known_catalogs;
mod near;
mod outcome;
mod parsed_request;
mod reach;
mod request;
mod select;
mod selector;
mod suggest;
pub mod support;
#[cfg(test)]
mod testing;

pub use change::{Change, apply};
pub use deprecation::DeprecationInfo;
pub use error::{FailureCause, ResolveError};
pub use explain::{CandidateVerdict, CatalogExplanation, CatalogOutcome, Explanation, Note, Rule};
pub use held::{HeldBack, HeldBy};
pub use joint::{MAX_COMBINATIONS, Party, TooMany, joint_move};
pub use near::{did_you_mean, near_names, near_versions};
pub use request::{CatalogInput, CatalogLookup, Installed, Request, Resolution, Selection};
pub use select::resolve;
pub use selector::{Operator, Requirement, Selector, SelectorError};
pub use suggest::suggest;
pub use support::{Support, SupportAnswer, SupportState};
