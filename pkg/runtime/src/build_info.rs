//! Build information: version, commit, state of the tree, date.
//!
//! A release build sets them in the environment of the compiler: `OLM_VERSION`, `OLM_COMMIT`, `OLM_TREE_STATE`
//! (`clean` or `dirty`) and `OLM_BUILD_DATE`. By default the version is the crate's and all others are `unknown`, so
//! that a developer's build does not change with every commit.

use std::sync::LazyLock;

/// Version, without a leading `v`.
pub const VERSION: &str = non_empty_or(option_env!("OLM_VERSION"), env!("CARGO_PKG_VERSION"));
/// Full hash of the commit.
pub const COMMIT: &str = non_empty_or(option_env!("OLM_COMMIT"), "unknown");
/// `clean` or `dirty`.
pub const TREE_STATE: &str = non_empty_or(option_env!("OLM_TREE_STATE"), "unknown");
/// Date of the build, RFC 3339.
pub const BUILD_DATE: &str = non_empty_or(option_env!("OLM_BUILD_DATE"), "unknown");

/// Returns the default for an absent or empty value: unset build arguments of an image are empty.
const fn non_empty_or(given: Option<&'static str>, default: &'static str) -> &'static str {
    match given {
        Some(given) if !given.is_empty() => given,
        _ => default,
    }
}

/// Returns all values in one line, for `--version` and the subcommand `version`.
pub fn line() -> &'static str {
    static LINE: LazyLock<String> =
        LazyLock::new(|| format!("{VERSION} (commit {COMMIT}, tree {TREE_STATE}, built {BUILD_DATE})"));
    &LINE
}

/// Logs version and commit.
pub fn log(binary: &str) {
    tracing::info!(version = VERSION, commit = COMMIT, "{binary} starts");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_values_have_a_default() {
        assert_eq!(non_empty_or(None, "d"), "d");
        assert_eq!(non_empty_or(Some(""), "d"), "d");
        assert_eq!(non_empty_or(Some("x"), "d"), "x");
        assert!(line().starts_with(VERSION));
    }
}
