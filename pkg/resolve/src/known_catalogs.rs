//! Facts for one resolution that are independent of the request.

use crate::facts::{Candidate, CatalogFacts};
use crate::installed_version::InstalledVersion;
use crate::parsed_request::ParsedRequest;
use crate::{CatalogInput, CatalogLookup, FailureCause, Request, Selection};
use olm_text::name::{CatalogName, PackageName};
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
            .and_then(|installed| InstalledVersion::of(installed).ok());
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
                        installed,
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
    pub(crate) fn best_bundles<'f>(&'f self, parsed: &ParsedRequest<'_>) -> Vec<BestBundle<'f, 'a>> {
        let best = |(at, facts): (usize, &'f CatalogFacts<'a>)| {
            let bundle = parsed.query(facts).best(facts)?;
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
            .filter(|(_, facts)| parsed.selects(facts.name()))
            .filter_map(best)
            .collect()
    }

    /// Returns the catalog that the extension is installed from and stays with, if it is in the input.
    pub(crate) fn home<'q>(&self, parsed: &ParsedRequest<'q>) -> Option<&'q CatalogName> {
        let request = parsed.request;
        let home = request.installed.as_ref()?.catalog.as_ref()?;
        let given = || {
            let names = self.facts.iter().map(CatalogFacts::name);
            let without = self.without.iter().map(|catalog| &catalog.name);
            let unread = self.unread.iter().map(|unread| &unread.catalog.name);
            names.chain(without).chain(unread).any(|name| name == home)
        };
        (request.selection == Selection::Ours && parsed.selects(home) && given()).then_some(home)
    }

    /// Returns the catalog that the extension is installed from if it is no longer in the input.
    pub(crate) fn former_catalog<'q>(&self, parsed: &ParsedRequest<'q>) -> Option<&'q CatalogName> {
        let home = parsed.request.installed.as_ref()?.catalog.as_ref()?;
        let ours = parsed.request.selection == Selection::Ours;
        (ours && self.home(parsed).is_none()).then_some(home)
    }
}

impl UnreadCatalog<'_> {
    pub(crate) fn cause(&self, package: &PackageName) -> FailureCause {
        FailureCause::UnreadCatalog {
            package: package.clone(),
            catalog: self.catalog.name.clone(),
            reason: self.reason.clone(),
        }
    }
}
