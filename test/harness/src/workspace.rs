//! Paths of the workspace: root, target directory, and built programs.
//!
//! The harness is never installed, so the place of its compilation is the workspace.

use std::path::{Path, PathBuf};

/// Returns the root of the workspace.
pub fn root() -> &'static Path {
    // `CARGO_MANIFEST_DIR` is <root>/test/harness; the fallbacks avoid a panic.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// Returns cargo's target directory: `CARGO_TARGET_DIR`, or `target` below the root.
pub fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns the project's test data, `test/testdata`.
pub fn testdata() -> PathBuf {
    root().join("test").join("testdata")
}

/// Returns the cargo that runs this process, else the one on the `PATH`.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
