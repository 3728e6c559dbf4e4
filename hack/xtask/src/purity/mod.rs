//! `cargo xtask purity`: checks that the pure crates link no crate that does IO, and that the steps of operator-controller obey
//! the rules of their folders.
//!
//! The links come from `cargo tree`. Besides, the `clippy.toml` of each pure crate forbids calls of the standard library for
//! files, clock and network.

mod folders;

use anyhow::bail;

use crate::shell::{cargo, output, root};

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
        found.extend(links(pure, &tree));
    }
    found.sort();
    found.dedup();
    if !found.is_empty() {
        bail!("pure crates must not do IO:\n  {}", found.join("\n  "));
    }
    let violations = folders::violations(&root())?;
    if !violations.is_empty() {
        bail!(
            "gather must not write, and decisions must not do IO:\n  {}",
            violations.join("\n  ")
        );
    }
    eprintln!("pure: {}", PURE.join(", "));
    Ok(())
}

/// Returns a line for every forbidden crate in the output of `cargo tree` about a pure crate.
fn links(pure: &str, tree: &str) -> Vec<String> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names
        .filter(|name| FORBIDDEN.contains(name))
        .map(|name| format!("{pure} links {name} (see `cargo tree -p {pure} -i {name}`)"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_links_are_found() {
        let tree = "olm-text v0.1.0 (/x/pkg/text)\ntokio v1.50.0\ntokio-macros v2.6.0 (proc-macro)\nrustls v0.23.0 (*)\n";
        let expected = ["tokio", "rustls"]
            .map(|name| format!("olm-text links {name} (see `cargo tree -p olm-text -i {name}`)"));
        assert_eq!(links("olm-text", tree), expected);
    }
}
