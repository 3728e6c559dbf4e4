//! Image of a controller, equal to the Dockerfile's, from an existing binary.
//!
//! The image has one static binary, the public certificate authorities and writable directories, and runs as a
//! nameless user.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::host_libraries::Library;
use crate::image::ImageBuilder;

/// User and group of the image: a name would require `/etc/passwd`.
pub const USER: &str = "65532:65532";
/// Path at which rustls looks for the public certificate authorities.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Build details in the image's labels.
#[derive(Clone, Debug)]
pub struct BuildInfo {
    /// Version of the product.
    pub version: String,
    /// Commit of the build.
    pub commit: String,
}

/// Builds the image of `component`, such as `catalogd`, from its binary. Images that nobody publishes may hold `libraries` for a
/// binary that is not static.
///
/// # Errors
/// The binary is unreadable, or linked dynamically and the image has no libraries.
pub fn controller_image(
    component: &str,
    binary: &Path,
    libraries: Vec<Library>,
    build: &BuildInfo,
) -> Result<ImageBuilder> {
    let bytes = std::fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    ensure!(
        !libraries.is_empty() || !is_dynamic(&bytes),
        "{} needs a dynamic loader, and the image has none: build it for a musl target",
        binary.display()
    );
    let mut image = ImageBuilder::new()
        .executable(component, bytes)
        .writable_dir("tmp")
        .writable_dir("var/cache")
        .run_with("User", USER)
        .run_with("WorkingDir", "/")
        .run_with("Entrypoint", json!([format!("/{component}")]))
        .label("org.opencontainers.image.title", component)
        .label("org.opencontainers.image.licenses", "Apache-2.0")
        .label("org.opencontainers.image.version", &build.version)
        .label("org.opencontainers.image.revision", &build.commit);
    for (path, content) in libraries {
        image = image.executable(&path, content);
    }
    if let Ok(authorities) = std::fs::read(AUTHORITIES) {
        image = image.file(AUTHORITIES, authorities);
    }
    Ok(image)
}

/// Returns true if an ELF file names a loader (`PT_INTERP`), false for any other than a 64-bit little-endian ELF
/// file.
fn is_dynamic(file: &[u8]) -> bool {
    const INTERP: u32 = 3;
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = file.get(at..at.checked_add(size)?)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        usize::try_from(number).ok()
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(table), Some(size), Some(count)) = (number(0x20, 8), number(0x36, 2), number(0x38, 2)) else {
        return false;
    };
    (0..count).any(|entry| {
        let kind = table.checked_add(entry * size).and_then(|at| number(at, 4));
        kind == usize::try_from(INTERP).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_binary_is_refused() {
        let me = std::env::current_exe().unwrap();
        let build = BuildInfo {
            version: "1".to_owned(),
            commit: "c".to_owned(),
        };
        // Tests are built for the host, dynamically.
        assert!(is_dynamic(&std::fs::read(&me).unwrap()));
        let error = controller_image("catalogd", &me, Vec::new(), &build)
            .unwrap_err()
            .to_string();
        assert!(error.contains("needs a dynamic loader"), "{error}");
        controller_image(
            "catalogd",
            &me,
            vec![("/lib/ld.so".to_owned(), Vec::new())],
            &build,
        )
        .unwrap();
        assert!(!is_dynamic(b"#!/bin/sh"));
    }
}
