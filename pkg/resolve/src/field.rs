//! Everything that is known for one resolution, whatever is asked.

use crate::facts::{Fact, Facts};
use crate::question::Question;
use crate::successor::From;
use crate::{CatalogInput, CatalogLookup, Request, Selection, Trouble};
use olm_version::go_quote;
use std::cmp::Reverse;

/// A catalog that nobody could read.
pub(crate) struct Unread<'a> {
    pub(crate) catalog: &'a CatalogInput,
    /// Position of the catalog among those given.
    pub(crate) position: usize,
    pub(crate) reason: String,
}

/// Everything that is known for one resolution.
pub(crate) struct Field<'a> {
    /// Catalogs that have the package.
    pub(crate) facts: Vec<Facts<'a>>,
    /// Catalogs that do not have it.
    pub(crate) without: Vec<&'a CatalogInput>,
    /// Catalogs that could not be read.
    pub(crate) unread: Vec<Unread<'a>>,
}

/// The best bundle of a catalog.
#[derive(Clone, Copy)]
pub(crate) struct Offer<'f, 'a> {
    /// Position in [`Field::facts`].
    pub(crate) at: usize,
    pub(crate) facts: &'f Facts<'a>,
    /// Position in [`Facts::bundles`].
    pub(crate) bundle: usize,
    pub(crate) fact: &'f Fact<'a>,
}

impl<'a> Field<'a> {
    /// Looks at `catalogs`: in the order given as upstream does, else by priority and name.
    pub(crate) fn new(request: &Request, catalogs: &'a [CatalogInput]) -> Self {
        let mut ordered: Vec<&CatalogInput> = catalogs.iter().collect();
        if request.selection == Selection::Ours {
            ordered.sort_by_key(|catalog| (Reverse(catalog.priority), &catalog.name));
        }
        // One that does not read is reported when it matters; see `choose`.
        let from = request
            .installed
            .as_ref()
            .and_then(|installed| From::read(installed).ok());
        let mut field = Self {
            facts: Vec::new(),
            without: Vec::new(),
            unread: Vec::new(),
        };
        for (position, catalog) in ordered.into_iter().enumerate() {
            let reason = match &catalog.lookup {
                CatalogLookup::Found(content) if !content.is_empty() => {
                    field.facts.push(Facts::new(
                        catalog,
                        content,
                        position,
                        from.as_ref(),
                        request.release_support,
                    ));
                    continue;
                }
                CatalogLookup::Found(_) | CatalogLookup::NoSuchPackage => {
                    field.without.push(catalog);
                    continue;
                }
                CatalogLookup::NotServing => {
                    format!("catalog {} is not being served", go_quote(&catalog.name))
                }
                CatalogLookup::Failed(reason) => reason.clone(),
            };
            field.unread.push(Unread {
                catalog,
                position,
                reason,
            });
        }
        field
    }

    /// The catalogs that offer a bundle, with the best of each.
    pub(crate) fn offers<'f>(&'f self, question: &Question<'_>) -> Vec<Offer<'f, 'a>> {
        let offer = |(at, facts): (usize, &'f Facts<'a>)| {
            let bundle = question.lens(facts).best(facts)?;
            let fact = facts.bundles.get(bundle)?;
            Some(Offer {
                at,
                facts,
                bundle,
                fact,
            })
        };
        let selected = self.facts.iter().enumerate();
        selected
            .filter(|(_, facts)| question.selects(facts.name()))
            .filter_map(offer)
            .collect()
    }

    /// The catalog that the extension is installed from and stays with, if it is among those given.
    pub(crate) fn home<'q>(&self, question: &Question<'q>) -> Option<&'q str> {
        let request = question.request;
        let home = request.installed.as_ref()?.catalog.as_deref()?;
        let given = || {
            let names = self.facts.iter().map(Facts::name);
            let without = self.without.iter().map(|catalog| catalog.name.as_str());
            let unread = self.unread.iter().map(|unread| unread.catalog.name.as_str());
            names.chain(without).chain(unread).any(|name| name == home)
        };
        (request.selection == Selection::Ours && question.selects(home) && given()).then_some(home)
    }

    /// The catalog that the extension is installed from when it is not among those given any more.
    pub(crate) fn left_home<'q>(&self, question: &Question<'q>) -> Option<&'q str> {
        let home = question.request.installed.as_ref()?.catalog.as_deref()?;
        let ours = question.request.selection == Selection::Ours;
        (ours && self.home(question).is_none()).then_some(home)
    }
}

impl Unread<'_> {
    pub(crate) fn trouble(&self, package: &str) -> Trouble {
        Trouble::Waiting {
            package: package.to_owned(),
            catalog: self.catalog.name.clone(),
            reason: self.reason.clone(),
        }
    }
}
