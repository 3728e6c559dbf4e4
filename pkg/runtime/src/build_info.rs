//! What this build is: version, commit, state of the tree, date.
//!
//! Set by whoever builds a release, in the environment of the compiler: `OLM_VERSION`, `OLM_COMMIT`, `OLM_TREE_STATE`
//! (`clean` or `dirty`) and `OLM_BUILD_DATE`. Without them the version is the crate's and the rest is `unknown`, so that
//! a build on a developer's machine does not change with every commit.

use std::sync::LazyLock;

/// Version, without a leading `v`.
pub const VERSION: &str = or(option_env!("OLM_VERSION"), env!("CARGO_PKG_VERSION"));
/// Full hash of the commit.
pub const COMMIT: &str = or(option_env!("OLM_COMMIT"), "unknown");
/// `clean` or `dirty`.
pub const TREE_STATE: &str = or(option_env!("OLM_TREE_STATE"), "unknown");
/// Date of the build, RFC 3339.
pub const BUILD_DATE: &str = or(option_env!("OLM_BUILD_DATE"), "unknown");

/// An argument of an image's build that was not given is an empty text.
const fn or(given: Option<&'static str>, default: &'static str) -> &'static str {
    match given {
        Some(given) if !given.is_empty() => given,
        _ => default,
    }
}

/// All of it in one line, for `--version` and the sub-command `version`.
pub fn line() -> &'static str {
    static LINE: LazyLock<String> =
        LazyLock::new(|| format!("{VERSION} (commit {COMMIT}, tree {TREE_STATE}, built {BUILD_DATE})"));
    &LINE
}

/// Says it in the log.
pub fn log(binary: &str) {
    tracing::info!(version = VERSION, commit = COMMIT, "{binary} starts");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_has_a_default() {
        assert_eq!(or(None, "d"), "d");
        assert_eq!(or(Some(""), "d"), "d");
        assert_eq!(or(Some("x"), "d"), "x");
        assert!(line().starts_with(VERSION));
    }
}
