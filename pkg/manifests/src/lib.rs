//! Manifests of the two controllers: the folders of `config/`, embedded and composed as kustomize composes them.
//!
//! [`render`] returns the objects of `config/default`, changed by overlays. Overlays combine: each one works on the
//! result of the one before, in the order of [`Overlay`]. A test compares every overlay, and combinations of them,
//! with the output of `kubectl kustomize`.

mod compose;
mod error;
mod files;
mod images;
mod kustomization;
mod order;
mod overlay;
mod patch;
mod transform;

use serde_json::Value;

pub use error::ManifestError;
pub use images::{Component, image_of, replace_image};
pub use order::is_crd;
pub use overlay::{Overlay, exclusive};

/// Namespace of the controllers in the manifests.
pub const NAMESPACE: &str = "olmv1-system";

/// Returns the objects of `config/default` with these overlays, in the order of their application: the namespace and
/// CRDs first, Deployments and what depends on them last. The order of `overlays` and repetitions do not matter.
///
/// # Errors
/// Two overlays exclude each other, or an embedded file is invalid.
pub fn render(overlays: &[Overlay]) -> Result<Vec<Value>, ManifestError> {
    let mut chosen = overlays.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    if let Some((one, other)) = exclusive(&chosen) {
        return Err(ManifestError::Exclusive(one, other));
    }
    let mut objects = compose::folder("default")?;
    for overlay in &chosen {
        objects = compose::over(overlay.folder_with(&chosen), objects)?;
    }
    order::sort(&mut objects);
    Ok(objects)
}

/// Returns all objects that some overlay adds to `config/default`, and those of `config/default`; each one once.
///
/// # Errors
/// An embedded file is invalid.
pub fn all() -> Result<Vec<Value>, ManifestError> {
    let mut objects = compose::folder("default")?;
    for overlay in Overlay::ALL {
        compose::merge(&mut objects, additions(overlay)?);
    }
    order::sort(&mut objects);
    Ok(objects)
}

/// Returns the objects that an overlay adds to `config/default`.
///
/// # Errors
/// An embedded file is invalid.
pub fn additions(overlay: Overlay) -> Result<Vec<Value>, ManifestError> {
    if overlay.is_beside() {
        compose::folder(overlay.folder())
    } else {
        compose::additions(overlay.folder())
    }
}
