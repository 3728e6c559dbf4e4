//! Shared parts of the differential tests, which compare this project with recorded answers of upstream (`vectors`), with the
//! real API server (`api_validation`) and with Go's YAML reader (`yaml`).

pub mod api_validation;
pub mod vectors;
pub mod yaml;
