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
