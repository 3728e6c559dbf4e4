//! Differential and component suites.
