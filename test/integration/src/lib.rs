//! Differential and component suites.

pub mod api_validation;
pub mod vectors;
pub mod yaml;
