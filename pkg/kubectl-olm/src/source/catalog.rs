//! Catalog: a directory, an image, or served by catalogd.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use olm_fbc::{Meta, PackageBuilder, PackageContent, schema};
use olm_resolve::CatalogLookup;
use olm_text::name::{CatalogName, PackageName};

use super::error::SourceError;
use super::query::{AddMeta, Query};
use super::served::ServedCatalog;
use super::{folder, image};
use crate::cli::AccessArgs;

/// A catalog with its location.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Name of the ClusterCatalog, or a name from the location.
    pub(crate) name: CatalogName,
    /// Priority; higher precedes.
    pub(crate) priority: i32,
    /// The labels of the ClusterCatalog.
    pub(crate) labels: BTreeMap<String, String>,
    pub(super) location: Location,
}

#[derive(Debug)]
pub(super) enum Location {
    Folder(PathBuf),
    Served(Box<ServedCatalog>),
    NotServing,
    /// The content must not be read, for this reason.
    Closed(String),
}

impl Catalog {
    pub(super) fn new(name: CatalogName, location: Location) -> Self {
        Self {
            name,
            priority: 0,
            labels: BTreeMap::new(),
            location,
        }
    }

    pub(super) fn folder(dir: &Path) -> Result<Self, SourceError> {
        if !dir.is_dir() {
            return Err(SourceError::NotADirectory { path: dir.to_owned() });
        }
        let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = full.file_name().map_or("catalog".into(), OsStr::to_string_lossy);
        Ok(Self::new(
            name.into_owned().into(),
            Location::Folder(dir.to_owned()),
        ))
    }

    pub(super) async fn image(reference: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        let image::Pulled { name, root, .. } =
            image::fetch(reference, access, image::Purpose::Catalog).await?;
        Ok(Self::new(name.into(), Location::Folder(root)))
    }

    pub(super) async fn catalogd(url: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        let served = ServedCatalog::direct(url, access).await?;
        Ok(Self::new(
            served.name().clone(),
            Location::Served(Box::new(served)),
        ))
    }

    /// Opens a catalog: a URL, an existing directory, or else an image.
    ///
    /// # Errors
    /// `word` is none of them, or the image cannot be pulled.
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

    /// Returns the resolved image of the content that a catalog of the cluster serves.
    pub(crate) fn digest(&self) -> Option<&str> {
        match &self.location {
            Location::Served(served) => Some(served.digest()),
            _ => None,
        }
    }

    /// Looks up a package in this catalog.
    pub(crate) async fn lookup(&self, package: &PackageName) -> CatalogLookup {
        if let Location::NotServing = self.location {
            return CatalogLookup::NotServing;
        }
        match self.package(package).await {
            Ok(Some(content)) => CatalogLookup::Found(content),
            Ok(None) => CatalogLookup::NoSuchPackage,
            Err(error) => CatalogLookup::Failed(olm_text::chain(&error)),
        }
    }

    async fn package(&self, package: &PackageName) -> Result<Option<Arc<PackageContent>>, SourceError> {
        if let Location::Served(served) = &self.location
            && !served.reads_by_query()
        {
            return served.package(package).await;
        }
        let query = Query::Package(package.clone());
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
    pub(crate) async fn everything(&self) -> Result<BTreeMap<PackageName, PackageContent>, SourceError> {
        let add = |all: &mut BTreeMap<PackageName, PackageBuilder>, meta: Meta| {
            let name = PackageName::from(if meta.schema == schema::PACKAGE {
                meta.name.as_str()
            } else {
                meta.package.as_str()
            });
            if !name.is_empty() {
                let builder = all
                    .entry(name.clone())
                    .or_insert_with(|| PackageBuilder::new(&name));
                builder.add(&meta)?;
            }
            Ok(())
        };
        let all = self.fold(&Query::Everything, BTreeMap::new(), add).await?;
        Ok(all
            .into_iter()
            .map(|(name, builder)| (name, builder.finish()))
            .filter(|(_, content)| !content.is_empty())
            .collect())
    }

    pub(super) async fn fold<T: Send + 'static>(
        &self,
        query: &Query,
        state: T,
        add: AddMeta<T>,
    ) -> Result<T, SourceError> {
        match &self.location {
            Location::Folder(root) => folder::fold(root.clone(), query, state, add).await,
            Location::Served(served) => served.fold(query, state, add).await,
            Location::NotServing => Err(SourceError::NotServing {
                catalog: self.name.clone(),
            }),
            Location::Closed(reason) => Err(SourceError::Unread {
                catalog: self.name.clone(),
                reason: reason.clone(),
            }),
        }
    }
}
