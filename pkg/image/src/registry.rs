//! The distribution protocol.
/// What a registry, or the way to it, answered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {}
