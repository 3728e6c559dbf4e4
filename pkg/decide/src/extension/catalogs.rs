//! Answers of the selected catalogs about one package.

use std::collections::BTreeMap;

use olm_resolve::{CatalogInput, CatalogLookup, Selection};
use olm_status::catalogs::{FormerContent, UnreadCatalogs};
use olm_text::name::CatalogName;

/// Result of asking the selected catalogs for a package.
#[derive(Debug)]
pub enum CatalogLookups {
    /// The ClusterCatalogs could not be listed; the text is the cause.
    Unavailable(String),
    /// `spec.source.catalog.selector` is invalid; the text is the cause.
    InvalidSelector(String),
    /// The catalogs were asked.
    Answered(CatalogAnswers),
}

/// Answers of the available catalogs.
#[derive(Debug)]
pub struct CatalogAnswers {
    /// True if the selector matches a ClusterCatalog, available or not.
    pub any_selected: bool,
    /// Answers of the available catalogs.
    pub answers: Vec<CatalogInput>,
    /// Catalogs among `answers` whose former content was read.
    pub former: Vec<FormerContent>,
    /// Digests of the catalogs whose present content was read.
    pub digests: BTreeMap<CatalogName, String>,
    /// Rule that ranks the catalogs.
    pub selection: Selection,
    /// Packages with a similar name, if no catalog has the requested one.
    pub similar: Vec<String>,
}

impl CatalogLookups {
    /// Returns true if a read failed, so that the catalogs are asked again although no event may come.
    pub fn incomplete(&self) -> bool {
        match self {
            Self::Answered(CatalogAnswers { answers, former, .. }) => {
                let failed = |answer: &CatalogInput| matches!(answer.lookup, CatalogLookup::Failed(_));
                !former.is_empty() || answers.iter().any(failed)
            }
            // Resolution fails, which is retried anyway.
            Self::Unavailable(_) | Self::InvalidSelector(_) => false,
        }
    }

    /// Returns the digest of the catalog, if its present content was read.
    pub fn digest(&self, catalog: &CatalogName) -> Option<&str> {
        match self {
            Self::Answered(answers) => answers.digests.get(catalog).map(String::as_str),
            Self::Unavailable(_) | Self::InvalidSelector(_) => None,
        }
    }

    /// Returns the catalogs that the status reports as degraded. `left_out` are unread catalogs that resolution did without.
    pub fn degraded(&self, left_out: &[(CatalogName, String)]) -> Option<UnreadCatalogs> {
        match self {
            Self::Answered(CatalogAnswers { former, .. }) => Some(UnreadCatalogs {
                former: former.clone(),
                left_out: left_out.to_vec(),
            }),
            Self::Unavailable(_) | Self::InvalidSelector(_) => None,
        }
    }
}
