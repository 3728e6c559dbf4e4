//! Facts for one resolution that are independent of the request.

use crate::facts::{Candidate, CatalogFacts};
use crate::installed_version::InstalledVersion;
use crate::question::Question;
use crate::{CatalogInput, CatalogLookup, Request, Selection, Trouble};
use olm_version::go_quote;
use std::cmp::Reverse;

/// Catalog that could not be read.
pub(crate) struct UnreadCatalog<'a> {
    pub(crate) catalog: &'a CatalogInput,
    /// Position of the catalog in the input.
    pub(crate) position: usize,
    pub(crate) reason: String,
}

/// Facts for one resolution.
pub(crate) struct KnownCatalogs<'a> {
    /// Catalogs that have the package.
    pub(crate) facts: Vec<CatalogFacts<'a>>,
    /// Catalogs that do not have it.
    pub(crate) without: Vec<&'a CatalogInput>,
    /// Catalogs that could not be read.
    pub(crate) unread: Vec<UnreadCatalog<'a>>,
}

/// Best bundle of a catalog.
#[derive(Clone, Copy)]
pub(crate) struct BestBundle<'f, 'a> {
    /// Position in [`KnownCatalogs::facts`].
    pub(crate) at: usize,
    pub(crate) facts: &'f CatalogFacts<'a>,
    /// Position in [`CatalogFacts::bundles`].
    pub(crate) bundle: usize,
    pub(crate) candidate: &'f Candidate<'a>,
}

impl<'a> KnownCatalogs<'a> {
    /// Collects the facts of `catalogs`: in the given order like upstream, else by priority and name.
    pub(crate) fn new(request: &Request, catalogs: &'a [CatalogInput]) -> Self {
        let mut ordered: Vec<&CatalogInput> = catalogs.iter().collect();
        if request.selection == Selection::Ours {
            ordered.sort_by_key(|catalog| (Reverse(catalog.priority), &catalog.name));
        }
        // Invalid bundles are reported when they matter; see `choose`.
        let installed = request
            .installed
            .as_ref()
            .and_then(|installed| InstalledVersion::read(installed).ok());
        let mut known = Self {
            facts: Vec::new(),
            without: Vec::new(),
            unread: Vec::new(),
        };
        for (position, catalog) in ordered.into_iter().enumerate() {
            let reason = match &catalog.lookup {
                CatalogLookup::Found(content) if !content.is_empty() => {
                    known.facts.push(CatalogFacts::new(
                        catalog,
                        content,
                        position,
                        installed.as_ref(),
                        request.release_support,
                    ));
                    continue;
                }
                CatalogLookup::Found(_) | CatalogLookup::NoSuchPackage => {
                    known.without.push(catalog);
                    continue;
                }
                CatalogLookup::NotServing => {
                    format!("catalog {} is not being served", go_quote(&catalog.name))
                }
                CatalogLookup::Failed(reason) => reason.clone(),
            };
            known.unread.push(UnreadCatalog {
                catalog,
                position,
                reason,
            });
        }
        known
    }

    /// Returns the best bundle of each catalog that offers one.
    pub(crate) fn bests<'f>(&'f self, question: &Question<'_>) -> Vec<BestBundle<'f, 'a>> {
        let best = |(at, facts): (usize, &'f CatalogFacts<'a>)| {
            let bundle = question.query(facts).best(facts)?;
            let candidate = facts.bundles.get(bundle)?;
            Some(BestBundle {
                at,
                facts,
                bundle,
                candidate,
            })
        };
        let selected = self.facts.iter().enumerate();
        selected
            .filter(|(_, facts)| question.selects(facts.name()))
            .filter_map(best)
            .collect()
    }

    /// Returns the catalog that the extension is installed from and stays with, if it is in the input.
    pub(crate) fn home<'q>(&self, question: &Question<'q>) -> Option<&'q str> {
        let request = question.request;
        let home = request.installed.as_ref()?.catalog.as_deref()?;
        let given = || {
            let names = self.facts.iter().map(CatalogFacts::name);
            let without = self.without.iter().map(|catalog| catalog.name.as_str());
            let unread = self.unread.iter().map(|unread| unread.catalog.name.as_str());
            names.chain(without).chain(unread).any(|name| name == home)
        };
        (request.selection == Selection::Ours && question.selects(home) && given()).then_some(home)
    }

    /// Returns the catalog that the extension is installed from if it is no longer in the input.
    pub(crate) fn left_home<'q>(&self, question: &Question<'q>) -> Option<&'q str> {
        let home = question.request.installed.as_ref()?.catalog.as_deref()?;
        let ours = question.request.selection == Selection::Ours;
        (ours && self.home(question).is_none()).then_some(home)
    }
}

impl UnreadCatalog<'_> {
    pub(crate) fn trouble(&self, package: &str) -> Trouble {
        Trouble::Waiting {
            package: package.to_owned(),
            catalog: self.catalog.name.clone(),
            reason: self.reason.clone(),
        }
    }
}
