//! The name of a catalog, checked before it becomes part of a path.

use std::fmt;

use olm_text::dns::subdomain_faults;

/// A DNS-1123 subdomain: lower case letters, digits, `-` and `.`, so it can name a directory and
/// cannot leave it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogName(String);

/// Why a text is no catalog name. Its text is the one Kubernetes uses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct NameError(Vec<String>);

impl CatalogName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] when it is longer than 253 bytes or no DNS-1123 subdomain.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let faults = subdomain_faults(&name);
        if faults.is_empty() {
            Ok(Self(name))
        } else {
            Err(NameError(faults))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CatalogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_subdomains_pass() {
        for good in ["a", "a.b-c", "operatorhubio", "0", &"a".repeat(253)] {
            assert!(CatalogName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "BAD_name",
            ".medium",
            "a..b",
            "-a",
            "a-",
            "a\0",
            "a b",
            &"a".repeat(254),
        ] {
            assert!(CatalogName::new(bad).is_err(), "{bad}");
        }
    }
}
