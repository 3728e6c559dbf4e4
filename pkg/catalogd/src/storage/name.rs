//! Catalog name, validated before it becomes part of a path.

use std::fmt;

use olm_text::dns::subdomain_faults;

/// DNS-1123 subdomain: lower-case letters, digits, `-` and `.`. It can name a directory and cannot leave its parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidCatalogName(String);

/// Invalid catalog name. Its text is Kubernetes' own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct NameError(Vec<String>);

impl ValidCatalogName {
    /// Validates a name.
    ///
    /// # Errors
    /// [`NameError`] if the name is longer than 253 bytes or not a DNS-1123 subdomain.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let faults = subdomain_faults(&name);
        if faults.is_empty() {
            Ok(Self(name))
        } else {
            Err(NameError(faults))
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ValidCatalogName {
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
            assert!(ValidCatalogName::new(good).is_ok(), "{good}");
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
            assert!(ValidCatalogName::new(bad).is_err(), "{bad}");
        }
    }
}
