//! Catalogs as a site of static files.

use std::collections::BTreeMap;

use olm_fbc::lifecycle::Date;
use olm_text::name::CatalogName;

use crate::catalogs::{CatalogView, catalogs_page};
use crate::icon::IconFile;
use crate::keywords::keywords_page;
use crate::layout::{ICON, Medium, STYLE};
use crate::package::package_page;
use crate::packages::site_page;
use crate::paths::{graph_path, package_path};
use crate::picture::picture;
use crate::search::Search;

/// Maximum number of packages of a site.
const PACKAGES: usize = 20_000;

/// Reason why there is no site of the catalogs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// The catalogs have too many packages.
    #[error("the catalogs have {found} packages, more than {PACKAGES}")]
    TooManyPackages {
        /// Number of packages.
        found: usize,
    },
    /// Two catalogs have one name.
    #[error("two catalogs have the name {name:?}")]
    Twice {
        /// The name.
        name: CatalogName,
    },
}

/// File of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative path: folders and a file name, separated by `/`. It consists of constants, slugs and digests.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Site of static files about catalogs.
#[derive(Debug)]
pub struct Site<'a> {
    catalogs: &'a [CatalogView],
    today: Date,
}

impl<'a> Site<'a> {
    /// Creates the site of some catalogs; `today` decides about support.
    ///
    /// # Errors
    /// The catalogs have too many packages, or equal names.
    pub fn new(catalogs: &'a [CatalogView], today: Date) -> Result<Self, SiteError> {
        let found = catalogs.iter().map(|catalog| catalog.packages().len()).sum();
        if found > PACKAGES {
            return Err(SiteError::TooManyPackages { found });
        }
        let mut names: Vec<&CatalogName> = catalogs.iter().map(CatalogView::name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair.first() == pair.last()) {
            let name = pair.first().map(|name| (*name).clone()).unwrap_or_default();
            return Err(SiteError::Twice { name });
        }
        Ok(Self { catalogs, today })
    }

    /// Returns the files, one after the other; icons come once. No path occurs twice.
    pub fn files(&self) -> impl Iterator<Item = File> {
        let search = Search::new(self.catalogs);
        let hits = search.find("");
        let mut fixed = vec![
            file("style.css", STYLE),
            file("icon.svg", ICON),
            file("index.html", site_page(&hits).into_string()),
            file("keywords.html", keywords_page(&search, &hits).into_string()),
            file(
                "catalogs.html",
                catalogs_page(Medium::Site, &self.catalogs.iter().collect::<Vec<_>>(), &[]).into_string(),
            ),
        ];
        let icons = hits.iter().filter_map(|hit| hit.package.icon.as_ref());
        let icons: BTreeMap<String, Vec<u8>> = icons
            .map(IconFile::new)
            .map(|icon| (icon.name, icon.bytes))
            .collect();
        fixed.extend(icons.into_iter().map(|(name, bytes)| File {
            path: format!("icons/{name}"),
            bytes,
        }));
        let pages = hits.into_iter().flat_map(|hit| {
            let name = &hit.package.listing.name;
            let page = package_page(Medium::Site, hit.catalog, hit.package, &[], self.today).into_string();
            let graph = picture(hit.catalog, &hit.package.content);
            let graph = graph.map(|graph| file(&graph_path(hit.catalog, name), graph));
            [Some(file(&package_path(hit.catalog, name), page)), graph]
        });
        fixed.into_iter().chain(pages.flatten())
    }
}

fn file(path: &str, content: impl Into<String>) -> File {
    File {
        path: path.to_owned(),
        bytes: content.into().into_bytes(),
    }
}
