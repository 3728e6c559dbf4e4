//! Names of bundles, packages and catalogs, as types of their own: they travel side by side through the crates.
//!
//! Foreign content defines the names, so no value is checked. A name is printed, compared and serialized like its text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// Declares types that hold one text.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        // Messages quote names by their debug form.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}

names! {
    /// Name of a bundle, unique in its package.
    BundleName,
    /// Name of a package.
    PackageName,
    /// Name of a ClusterCatalog, or of a catalog on the command line.
    CatalogName,
    /// Image reference as written in a catalog; it may be invalid.
    ImageText,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_looks_like_its_text() {
        let name = CatalogName::from("a\"b");
        assert_eq!(format!("{name} {name:?}"), "a\"b \"a\\\"b\"");
        assert_eq!(serde_json::to_string(&name).unwrap(), r#""a\"b""#);
        assert_eq!([name.clone(), "c".into()].join(" "), "a\"b c");
        assert!(name == "a\"b" && name.len() == 3);
    }
}
