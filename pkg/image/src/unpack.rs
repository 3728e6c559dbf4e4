//! Layers onto disk.
/// Why a layer is refused.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {}
