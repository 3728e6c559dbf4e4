//! `cargo xtask purity`: checks that the pure crates link no crate that does IO, and that the steps of operator-controller obey
//! the rules of their folders.
//!
//! The links come from `cargo tree`. Besides, the `clippy.toml` of each pure crate forbids calls of the standard library for
//! files, clock and network.

mod folders;

use anyhow::bail;

use crate::shell::{cargo, output};

/// The pure crates: those below the line in the table of docs/architecture.md.
const PURE: [&str; 15] = [
    "olm-api",
    "olm-cel",
    "olm-text",
    "olm-version",
    "olm-yaml",
    "olm-fbc",
    "olm-graph",
    "olm-manifests",
    "olm-packages",
    "olm-resolve",
    "olm-bundle",
    "olm-plan",
    "olm-status",
    "olm-rollout",
    "olm-ui",
];

/// Crates that do IO or contain a runtime for IO.
const FORBIDDEN: [&str; 12] = [
    "tokio",
    "async-std",
    "mio",
    "hyper",
    "reqwest",
    "kube-client",
    "kube-runtime",
    "axum",
    "oci-client",
    "tar",
    "rustls",
    "tempfile",
];

/// Runs the checks. Fails with a line for every forbidden link or call.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for pure in PURE {
        let tree = output(cargo().args([
            "tree",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            pure,
        ]))?;
        for line in tree.lines() {
            let name = line.split(' ').next().unwrap_or_default();
            if FORBIDDEN.contains(&name) {
                found.push(format!(
                    "{pure} links {name} (see `cargo tree -p {pure} -i {name}`)"
                ));
            }
        }
    }
    found.sort();
    found.dedup();
    if !found.is_empty() {
        bail!("pure crates must not do IO:\n  {}", found.join("\n  "));
    }
    let violations = folders::violations()?;
    if !violations.is_empty() {
        bail!(
            "gather must not write, and decisions must not do IO:\n  {}",
            violations.join("\n  ")
        );
    }
    eprintln!("pure: {}", PURE.join(", "));
    Ok(())
}
