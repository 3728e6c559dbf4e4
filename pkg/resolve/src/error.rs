//! Failures of a resolution.

use crate::{Explanation, SelectorError};
use olm_text::name::{BundleName, CatalogName, PackageName};
use olm_version::{ParseError, RangeError};
use std::fmt;

/// Failure of a resolution: upstream's sentence, then our sentence about possible remedies.
#[derive(Debug)]
pub struct ResolveError {
    /// Cause of the failure.
    pub cause: FailureCause,
    /// Sentence about existing and reachable bundles; empty if there is nothing to add.
    pub hint: String,
    /// The reasoning.
    pub explanation: Box<Explanation>,
}

/// Cause of a failed resolution. `Display` is upstream's sentence, exactly.
#[derive(Debug, thiserror::Error)]
pub enum FailureCause {
    /// The catalog selector does not parse.
    #[error("desired catalog selector is invalid: {source}")]
    Selector {
        /// Syntax error of the selector; part of upstream's sentence.
        source: SelectorError,
    },
    /// The requested range does not parse.
    #[error("desired version range {} is invalid: {source}", olm_version::go_quote(range))]
    Range {
        /// The range as written.
        range: String,
        /// Syntax error of the range; part of upstream's sentence.
        source: RangeError,
    },
    /// The version of the installed bundle does not parse, so no edge can be tested.
    #[error("error walking catalogs: error finding upgrade edges: {}: {source}",
        if *separate_release { "failed to parse installed bundle version and release" }
        else { "failed to get version and release of installed bundle" })]
    InstalledVersion {
        /// True if version and release were recorded as separate fields.
        separate_release: bool,
        /// Syntax error of the version; part of upstream's sentence.
        source: ParseError,
    },
    /// A catalog that could change the choice cannot be read.
    #[error(
        "error walking catalogs: error getting package {} from catalog {}: {reason}",
        olm_version::go_quote(package),
        olm_version::go_quote(catalog)
    )]
    UnreadCatalog {
        /// The package.
        package: PackageName,
        /// The catalog.
        catalog: CatalogName,
        /// Reason why the catalog cannot be read.
        reason: String,
    },
    /// The rules leave no bundle, or several.
    #[error("{sentence}")]
    NoSingleBundle {
        /// Upstream's sentence.
        sentence: String,
        /// Tied catalogs; empty if no bundle is left.
        tied: Vec<CatalogName>,
    },
    /// The version of the chosen bundle does not parse.
    #[error(
        "error getting resolved bundle version for bundle {}: {source}",
        olm_version::go_quote(bundle)
    )]
    BundleVersion {
        /// The bundle.
        bundle: BundleName,
        /// Syntax error of the version; part of upstream's sentence.
        source: olm_fbc::VersionError,
    },
    /// A dependency of the chosen bundle is not met.
    #[error(
        "validating bundle {0}: bundle {0} has a dependency declared via property {1} which is currently not supported",
        olm_version::go_quote(bundle),
        olm_version::go_quote(property)
    )]
    Dependency {
        /// The bundle.
        bundle: BundleName,
        /// The type of the property.
        property: String,
    },
}

impl ResolveError {
    pub(crate) fn new(cause: FailureCause, hint: String, explanation: Explanation) -> Self {
        Self {
            cause,
            hint,
            explanation: Box::new(explanation),
        }
    }

    /// Returns upstream's sentence alone.
    pub fn head(&self) -> String {
        self.cause.to_string()
    }
}

/// Converts a failure without a hint.
impl From<FailureCause> for ResolveError {
    fn from(cause: FailureCause) -> Self {
        Self::new(cause, String::new(), Explanation::default())
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if self.hint.is_empty() {
            Ok(())
        } else {
            write!(f, ". {}", self.hint)
        }
    }
}

impl std::error::Error for ResolveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already contains the text of the source.
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_follows_upstreams_sentence() {
        let cause = || FailureCause::Dependency {
            bundle: "a.v1".into(),
            property: "olm.gvk.required".to_owned(),
        };
        let error = ResolveError::new(
            cause(),
            "Ask for another version".to_owned(),
            Explanation::default(),
        );
        assert_eq!(error.to_string(), format!("{}. Ask for another version", cause()));
        assert_eq!(error.head(), cause().to_string());
        assert_eq!(ResolveError::from(cause()).to_string(), cause().to_string());
    }
}
