//! Paths: the workspace's root, its target directory, and the programs that cargo built.
//!
//! The harness is never installed anywhere, so the place it was compiled from is the workspace.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> &'static Path {
    // `CARGO_MANIFEST_DIR` is <root>/test/harness; the fallbacks keep this total.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// The directory cargo builds into: `CARGO_TARGET_DIR`, or `target` below the root.
pub fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The project's own test data, `test/testdata`.
pub fn testdata() -> PathBuf {
    root().join("test").join("testdata")
}

/// The cargo that runs us, else the one on the `PATH`.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
