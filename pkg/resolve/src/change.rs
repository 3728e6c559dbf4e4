//! Changes of a spec in a suggestion.

use crate::as_text::as_text;
use crate::{CatalogInput, Request};
use olm_text::name::CatalogName;
use olm_version::{RequestedRange, go_quote};
use serde::Serialize;
use std::fmt;

/// A change of `spec.source.catalog`. `Display` is one line, in the imperative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub enum Change {
    /// Ask for this version.
    Version {
        /// The range to write.
        #[serde(rename = "version", serialize_with = "as_text")]
        range: RequestedRange,
    },
    /// Choose from this channel, too.
    AddChannel {
        /// The channel.
        channel: String,
    },
    /// Choose from this channel alone.
    SetChannel {
        /// The channel.
        channel: String,
    },
    /// Choose from all bundles, whatever their channels.
    AnyChannel,
    /// Choose from this catalog alone.
    SelectCatalog {
        /// The catalog.
        catalog: CatalogName,
    },
    /// Let any version follow the installed one.
    SelfCertified,
    /// Wait until this catalog can be read; it may still have no suitable bundle.
    WaitFor {
        /// The catalog.
        catalog: CatalogName,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { range } => {
                write!(f, "set spec.source.catalog.version to {}", go_quote(range.as_str()))
            }
            Self::AddChannel { channel } => {
                write!(f, "add {} to spec.source.catalog.channels", go_quote(channel))
            }
            Self::SetChannel { channel } => {
                write!(f, "set spec.source.catalog.channels to [{}]", go_quote(channel))
            }
            Self::AnyChannel => f.write_str("remove spec.source.catalog.channels"),
            Self::SelectCatalog { catalog } => write!(
                f,
                "select catalog {} alone in spec.source.catalog.selector (label \
                 olm.operatorframework.io/metadata.name)",
                go_quote(catalog)
            ),
            Self::SelfCertified => f.write_str(
                "set spec.source.catalog.upgradeConstraintPolicy to SelfCertified, which allows an upgrade that \
                 the catalog does not offer",
            ),
            Self::WaitFor { catalog } => write!(f, "wait until catalog {} can be read", go_quote(catalog)),
        }
    }
}

impl Change {
    /// Applies the change to `request`. The selection of catalogs is not part of a request.
    pub(crate) fn amend(&self, request: &mut Request) {
        match self {
            Self::Version { range } => request.range = Some(range.clone()),
            Self::AddChannel { channel } => request.channels.push(channel.clone()),
            Self::SetChannel { channel } => request.channels = vec![channel.clone()],
            Self::AnyChannel => request.channels.clear(),
            Self::SelfCertified => request.self_certified = true,
            Self::SelectCatalog { .. } | Self::WaitFor { .. } => {}
        }
    }

    /// Cost of the change to the user. Among equally large sets of changes, the one with the lowest sum is suggested.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Version { .. } => 1,
            Self::AddChannel { .. } => 2,
            Self::SetChannel { .. } => 3,
            Self::AnyChannel => 4,
            Self::SelectCatalog { .. } => 10,
            Self::SelfCertified => 30,
            Self::WaitFor { .. } => 0,
        }
    }

    /// Returns the only catalog that remains after this change.
    pub(crate) fn only(&self) -> Option<&CatalogName> {
        match self {
            Self::SelectCatalog { catalog } => Some(catalog),
            _ => None,
        }
    }
}

/// Returns the request and the catalogs after `changes`.
pub fn apply(
    changes: &[Change],
    request: &Request,
    catalogs: &[CatalogInput],
) -> (Request, Vec<CatalogInput>) {
    let mut request = request.clone();
    for change in changes {
        change.amend(&mut request);
    }
    let left = |catalog: &&CatalogInput| {
        let mut only = changes.iter().filter_map(Change::only);
        only.all(|only| *only == catalog.name)
    };
    (request, catalogs.iter().filter(left).cloned().collect())
}

#[cfg(test)]
mod tests {
    use crate::CatalogLookup;

    use super::*;

    fn catalog(name: &str) -> CatalogInput {
        CatalogInput {
            name: name.into(),
            priority: 0,
            lookup: CatalogLookup::NoSuchPackage,
        }
    }

    /// Applies changes to a request for channel `a`; returns it and the names of the catalogs that are left.
    fn applied(changes: &[Change]) -> (Request, Vec<String>) {
        let request = Request {
            channels: vec!["a".to_owned()],
            ..Request::default()
        };
        let (request, left) = apply(changes, &request, &[catalog("x"), catalog("y")]);
        (
            request,
            left.iter().map(|catalog| catalog.name.to_string()).collect(),
        )
    }

    #[test]
    fn each_change_amends_its_part_of_the_spec() {
        let both = ["x", "y"];
        let channel = || "b".to_owned();
        let (request, left) = applied(&[Change::AddChannel { channel: channel() }, Change::SelfCertified]);
        assert_eq!(
            (request.channels.join(" ").as_str(), request.self_certified),
            ("a b", true)
        );
        assert_eq!(left, both);
        let (request, _) = applied(&[Change::SetChannel { channel: channel() }]);
        assert_eq!(
            (request.channels.join(" ").as_str(), request.self_certified),
            ("b", false)
        );
        assert!(applied(&[Change::AnyChannel]).0.channels.is_empty());
        let range = RequestedRange::new(">=2.0.0").unwrap();
        let (request, left) = applied(&[Change::Version { range: range.clone() }]);
        assert_eq!((request.range, left.len()), (Some(range), 2));
    }

    #[test]
    fn the_selection_of_a_catalog_leaves_that_one() {
        let select = |name: &str| Change::SelectCatalog { catalog: name.into() };
        assert_eq!(applied(&[select("y")]).1, ["y"]);
        assert!(applied(&[select("x"), select("y")]).1.is_empty());
        let wait = Change::WaitFor { catalog: "y".into() };
        assert_eq!(applied(&[wait]).1, ["x", "y"]);
    }
}
