//! Search of packages by words.

use olm_packages::{PackageProfile, Rank, Texts, words};
use olm_text::name::CatalogName;

use crate::catalogs::CatalogView;

/// Package that a search found.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    /// The catalog.
    pub catalog: &'a CatalogName,
    /// The package.
    pub package: &'a PackageProfile,
}

/// Packages of catalogs, which are prepared for searches.
#[derive(Debug)]
pub struct Search<'a> {
    packages: Vec<(Hit<'a>, &'a Texts)>,
}

impl<'a> Search<'a> {
    /// Creates a search in catalogs.
    pub fn new(catalogs: impl IntoIterator<Item = &'a CatalogView>) -> Self {
        let hits = catalogs.into_iter().flat_map(|catalog| {
            catalog.searched().map(|(package, texts)| {
                let hit = Hit {
                    catalog: catalog.name(),
                    package,
                };
                (hit, texts)
            })
        });
        Self {
            packages: hits.collect(),
        }
    }

    /// Returns the packages that have every word of the query, best match first; all packages by name for an empty query.
    pub fn find(&self, query: &str) -> Vec<Hit<'a>> {
        let words = words(query);
        let ranked = self.packages.iter();
        let mut ranked: Vec<(Rank, &Hit<'a>)> = ranked
            .filter_map(|(hit, texts)| Some((texts.rank(&words)?, hit)))
            .collect();
        ranked.sort_by(|a, b| key(a).cmp(&key(b)));
        ranked.into_iter().map(|(_, hit)| *hit).collect()
    }
}

/// Sort key of a result: rank, name of the package, catalog.
fn key<'a>(ranked: &(Rank, &Hit<'a>)) -> (Rank, &'a str, &'a CatalogName) {
    let (rank, hit) = ranked;
    (*rank, &hit.package.listing.name, hit.catalog)
}
