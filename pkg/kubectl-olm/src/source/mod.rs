//! Sources of catalogs: directories, images, a catalogd, or the cluster's `ClusterCatalog`s.
//!
//! Every source is read as a stream of metas, with one meta in memory at a time. Only the cache of images is written.

mod bundle;
mod cluster;
mod error;
mod folder;
mod image;
mod listed;
mod live;
mod needs;
mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use olm_fbc::{ContentError, Meta, PackageBuilder, PackageContent, schema};
use olm_resolve::{CatalogInput, CatalogLookup, Selector, near_names};

pub(crate) use bundle::files as bundle_files;
pub(crate) use cluster::{CATALOG_ANNOTATION, Cluster};
pub(crate) use error::SourceError;
pub(crate) use listed::Listed;
pub(crate) use live::{last_seen, owner};

use crate::cli::{AccessArgs, SourceArgs};
use crate::installed::found;
use served::Served;

/// Which metas of a catalog are needed. More may be delivered.
#[derive(Clone, Debug)]
enum Query {
    Everything,
    /// Every `olm.package`.
    Packages,
    /// Every `olm.package`, and the parts of bundles that describe it.
    Descriptions,
    Package(String),
}

/// A catalog with its source.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Its name: of the ClusterCatalog, or made of where it is.
    pub(crate) name: String,
    /// Higher goes first.
    pub(crate) priority: i32,
    /// The labels of the ClusterCatalog.
    pub(crate) labels: BTreeMap<String, String>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Folder(PathBuf),
    Served(Box<Served>),
    NotServing,
}

/// Everything that can be asked.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The catalogs; those of a cluster that are made unavailable are left out.
    pub(crate) catalogs: Vec<Catalog>,
}

impl Sources {
    /// Finds the catalogs that `args` names.
    ///
    /// # Errors
    /// An image or the list of `ClusterCatalog`s cannot be had, or no catalog has the name asked for.
    pub(crate) async fn open(args: &SourceArgs) -> Result<Self, SourceError> {
        let mut catalogs = Vec::new();
        for dir in &args.dir {
            catalogs.push(Catalog::folder(dir)?);
        }
        for reference in &args.image {
            catalogs.push(Catalog::image(reference, &args.access).await?);
        }
        for url in &args.catalogd {
            catalogs.push(Catalog::catalogd(url, &args.access).await?);
        }
        if !args.is_offline() {
            let cluster = Cluster::connect(&args.access).await;
            catalogs = cluster.map_err(SourceError::or_offline)?.catalogs().await?;
        }
        distinguish(&mut catalogs);
        Self { catalogs }.only(&args.only)
    }

    /// Keeps only the named catalogs; all if `names` is empty.
    ///
    /// # Errors
    /// No catalog has one of the names.
    pub(crate) fn only(mut self, names: &[String]) -> Result<Self, SourceError> {
        let present: Vec<String> = self.catalogs.iter().map(|catalog| catalog.name.clone()).collect();
        if let Some(missing) = names.iter().find(|name| !present.contains(name)) {
            return Err(SourceError::NoSuchCatalog {
                name: missing.clone(),
                present,
            });
        }
        if !names.is_empty() {
            self.catalogs.retain(|catalog| names.contains(&catalog.name));
        }
        Ok(self)
    }

    /// Looks up a package in each catalog that `selector` matches.
    pub(crate) async fn lookup(&self, package: &str, selector: &Selector) -> Vec<CatalogInput> {
        let mut answers = Vec::new();
        for catalog in self.catalogs.iter().filter(|c| selector.matches(&c.labels)) {
            answers.push(CatalogInput {
                name: catalog.name.clone(),
                priority: catalog.priority,
                lookup: catalog.lookup(package).await,
            });
        }
        answers
    }
}

impl Sources {
    /// The packages of the selected catalogs that `package` may be a misspelling of, where none of `inputs` has it. A
    /// catalog that cannot be read has none.
    pub(crate) async fn similar(
        &self,
        package: &str,
        selector: &Selector,
        inputs: &[CatalogInput],
    ) -> Vec<String> {
        let mut names = BTreeSet::new();
        if found(inputs).next().is_none() {
            for catalog in self.catalogs.iter().filter(|c| selector.matches(&c.labels)) {
                names.extend(catalog.package_names().await.unwrap_or_default());
            }
        }
        let near = near_names(package, names.iter().map(String::as_str));
        near.into_iter().map(ToOwned::to_owned).collect()
    }
}

impl Catalog {
    fn new(name: String, place: Place) -> Self {
        Self {
            name,
            priority: 0,
            labels: BTreeMap::new(),
            place,
        }
    }

    fn folder(dir: &Path) -> Result<Self, SourceError> {
        if !dir.is_dir() {
            return Err(SourceError::NotADirectory { path: dir.to_owned() });
        }
        let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = full.file_name().map_or_else(
            || "catalog".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self::new(name, Place::Folder(dir.to_owned())))
    }

    async fn image(reference: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        let (name, root) = image::fetch(reference, access, image::Purpose::Catalog).await?;
        Ok(Self::new(name, Place::Folder(root)))
    }

    async fn catalogd(url: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        let served = Served::direct(url, access).await?;
        Ok(Self::new(
            served.name().to_owned(),
            Place::Served(Box::new(served)),
        ))
    }

    /// A catalog from one word: a directory that exists, a URL, or else an image.
    ///
    /// # Errors
    /// It is none of them, or cannot be had.
    pub(crate) async fn from_word(word: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        if word.starts_with("https://") || word.starts_with("http://") {
            Self::catalogd(word, access).await
        } else if Path::new(word).is_dir() {
            Self::folder(Path::new(word))
        } else if word.starts_with('.') || word.starts_with('/') {
            Err(SourceError::NotADirectory { path: word.into() })
        } else {
            Self::image(word, access).await
        }
    }

    /// Looks up a package in this catalog.
    pub(crate) async fn lookup(&self, package: &str) -> CatalogLookup {
        if let Place::NotServing = self.place {
            return CatalogLookup::NotServing;
        }
        match self.package(package).await {
            Ok(Some(content)) => CatalogLookup::Found(content),
            Ok(None) => CatalogLookup::NoSuchPackage,
            Err(error) => CatalogLookup::Failed(crate::failure::Failure::from(error).message()),
        }
    }

    async fn package(&self, package: &str) -> Result<Option<Arc<PackageContent>>, SourceError> {
        if let Place::Served(served) = &self.place
            && !served.by_proxy()
        {
            return served.package(package).await;
        }
        let query = Query::Package(package.to_owned());
        let builder = self
            .fold(&query, PackageBuilder::new(package), |builder, meta| {
                builder.add(&meta).map(drop)
            })
            .await?;
        let content = builder.finish();
        Ok((!content.is_empty()).then(|| Arc::new(content)))
    }

    /// Reads all packages of the catalog.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn everything(&self) -> Result<BTreeMap<String, PackageContent>, SourceError> {
        let take = |all: &mut BTreeMap<String, PackageBuilder>, meta: Meta| {
            let name = if meta.schema == schema::PACKAGE {
                meta.name.clone()
            } else {
                meta.package.clone()
            };
            if !name.is_empty() {
                let builder = all
                    .entry(name.clone())
                    .or_insert_with(|| PackageBuilder::new(&name));
                builder.add(&meta)?;
            }
            Ok(())
        };
        let all = self.fold(&Query::Everything, BTreeMap::new(), take).await?;
        Ok(all
            .into_iter()
            .map(|(name, builder)| (name, builder.finish()))
            .filter(|(_, content)| !content.is_empty())
            .collect())
    }

    async fn fold<T: Send + 'static>(
        &self,
        query: &Query,
        state: T,
        take: fn(&mut T, Meta) -> Result<(), ContentError>,
    ) -> Result<T, SourceError> {
        match &self.place {
            Place::Folder(root) => folder::fold(root.clone(), state, take).await,
            Place::Served(served) => served.fold(query, state, take).await,
            Place::NotServing => Err(SourceError::NotServing {
                catalog: self.name.clone(),
            }),
        }
    }
}

/// Gives catalogs of one name different ones, so that each can be told.
fn distinguish(catalogs: &mut [Catalog]) {
    let mut taken = BTreeSet::new();
    for catalog in catalogs {
        let mut name = catalog.name.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{}-{number}", catalog.name);
        }
        catalog.name = name;
    }
}
