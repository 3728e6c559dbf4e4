//! Registry credentials from a docker config file.
/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {}
