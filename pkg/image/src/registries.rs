//! registries.conf, version 2.
/// Why registries.conf cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistriesError {}
